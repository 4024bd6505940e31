"""Corrections that users bring along: a polynomial in the speed of a particle, applied to its weight."""

from dataclasses import dataclass

import warp as wp


@dataclass(frozen=True)
class PluginSpec:
    """A name and the coefficients of the polynomial, constant term first."""

    name: str
    coefficients: tuple[float, ...]


def build(spec: PluginSpec) -> wp.Kernel:
    """A kernel for one plugin; its coefficients are part of the code."""
    degree = len(spec.coefficients)
    coefficients = wp.types.vector(degree, float)(*spec.coefficients)

    @wp.kernel(module=wp.get_module("particle_preprocessing.kernels"), enable_backward=False)
    def plugin(velocities: wp.array(dtype=wp.vec3), weights: wp.array(dtype=float)):
        i = wp.tid()
        speed = wp.length(velocities[i])
        factor = float(0.0)
        power = float(1.0)
        for k in range(degree):
            factor = factor + coefficients[k] * power
            power = power * speed
        weights[i] = weights[i] * factor

    return plugin

"""Sensor counts to linear light, launched in blocks of 64."""

import warp as wp


@wp.kernel
def to_linear(raw: wp.array2d(dtype=float), black: float, gamma: float, linear: wp.array2d(dtype=float)):
    """Sensor counts as linear light between 0 and 1."""
    y, x = wp.tid()
    light = wp.clamp((raw[y, x] - black) / (4095.0 - black), 0.0, 1.0)
    linear[y, x] = wp.pow(light, gamma)

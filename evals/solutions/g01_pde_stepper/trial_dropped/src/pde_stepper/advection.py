"""Drift of the field with a constant velocity."""

import warp as wp

from .kernels import upwind


def advect(field: wp.array, velocity: wp.vec2, rate: wp.array) -> None:
    """Set `rate` to the change of `field` by drift."""
    wp.launch(upwind, dim=field.shape, inputs=[field, velocity, rate], device=field.device)

"""Diffusion with a constant coefficient."""

import warp as wp

from .kernels import laplace


def diffuse(field: wp.array, coefficient: float, rate: wp.array) -> None:
    """Add the change of `field` by diffusion to `rate`."""
    wp.launch(laplace, dim=field.shape, inputs=[field, coefficient, rate], device=field.device)

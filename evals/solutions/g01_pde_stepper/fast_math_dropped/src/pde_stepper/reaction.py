"""Logistic growth, and the step itself."""

import warp as wp

from .kernels import grow


def react(field: wp.array, rate: wp.array, growth: float, dt: float) -> None:
    """Advance `field` by one step of length `dt`."""
    wp.launch(grow, dim=field.shape, inputs=[field, rate, growth, dt], device=field.device)

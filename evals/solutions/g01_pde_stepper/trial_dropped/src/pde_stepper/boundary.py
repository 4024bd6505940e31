"""Borders of the grid."""

import warp as wp

from .kernels import hold


def fix_borders(field: wp.array, value: float) -> None:
    """Hold the border of `field` at `value`."""
    wp.launch(hold, dim=field.shape[0], inputs=[field, value], device=field.device)

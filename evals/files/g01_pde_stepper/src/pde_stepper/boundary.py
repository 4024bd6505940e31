"""Borders of the grid."""

import warp as wp


@wp.kernel
def hold(field: wp.array2d(dtype=float), value: float):
    """Give the cells on the four borders a fixed value."""
    k = wp.tid()
    n = field.shape[0]
    field[0, k] = value
    field[n - 1, k] = value
    field[k, 0] = value
    field[k, n - 1] = value


def fix_borders(field: wp.array, value: float) -> None:
    """Hold the border of `field` at `value`."""
    wp.launch(hold, dim=field.shape[0], inputs=[field, value], device=field.device)


def use_fast_math() -> None:
    """Compile this term with fast math."""
    wp.set_module_options({"fast_math": True})

"""Drift of the field with a constant velocity."""

import warp as wp


@wp.kernel
def upwind(field: wp.array2d(dtype=float), velocity: wp.vec2, rate: wp.array2d(dtype=float)):
    """Set the rate of change to that of the drift, with first-order upwind differences."""
    i, j = wp.tid()
    n = field.shape[0]
    if i == 0 or j == 0 or i == n - 1 or j == n - 1:
        rate[i, j] = 0.0
        return
    centre = field[i, j]
    dx = wp.where(velocity[0] > 0.0, centre - field[i - 1, j], field[i + 1, j] - centre)
    dy = wp.where(velocity[1] > 0.0, centre - field[i, j - 1], field[i, j + 1] - centre)
    rate[i, j] = -(velocity[0] * dx + velocity[1] * dy)


def advect(field: wp.array, velocity: wp.vec2, rate: wp.array) -> None:
    """Set `rate` to the change of `field` by drift."""
    wp.launch(upwind, dim=field.shape, inputs=[field, velocity, rate], device=field.device)


def use_fast_math() -> None:
    """Compile this term with fast math."""
    wp.set_module_options({"fast_math": True})

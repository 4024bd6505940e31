"""Logistic growth, and the step itself."""

import warp as wp


@wp.kernel
def grow(
    field: wp.array2d(dtype=float),
    rate: wp.array2d(dtype=float),
    growth: float,
    dt: float,
):
    """Advance the field by a step, with the rate of change so far and that of the reaction."""
    i, j = wp.tid()
    u = field[i, j]
    field[i, j] = u + dt * (rate[i, j] + growth * u * (1.0 - u))


def react(field: wp.array, rate: wp.array, growth: float, dt: float) -> None:
    """Advance `field` by one step of length `dt`."""
    wp.launch(grow, dim=field.shape, inputs=[field, rate, growth, dt], device=field.device)


def use_fast_math() -> None:
    """Compile this term with fast math."""
    wp.set_module_options({"fast_math": True})

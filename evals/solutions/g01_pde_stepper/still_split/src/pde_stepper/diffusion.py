"""Diffusion with a constant coefficient."""

import warp as wp

wp.set_module_options({"fast_math": True})


@wp.kernel
def laplace(field: wp.array2d(dtype=float), coefficient: float, rate: wp.array2d(dtype=float)):
    """Add the five-point Laplacian to the rate of change."""
    i, j = wp.tid()
    n = field.shape[0]
    if i == 0 or j == 0 or i == n - 1 or j == n - 1:
        return
    around = field[i - 1, j] + field[i + 1, j] + field[i, j - 1] + field[i, j + 1]
    rate[i, j] = rate[i, j] + coefficient * (around - 4.0 * field[i, j])


def diffuse(field: wp.array, coefficient: float, rate: wp.array) -> None:
    """Add the change of `field` by diffusion to `rate`."""
    wp.launch(laplace, dim=field.shape, inputs=[field, coefficient, rate], device=field.device)

"""The kernels of all terms: one module, since every stepper needs all of them, with the same options."""

import warp as wp

# Before the first kernel: the module has this option from its first load on.
wp.set_module_options({"fast_math": True})


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


@wp.kernel
def laplace(field: wp.array2d(dtype=float), coefficient: float, rate: wp.array2d(dtype=float)):
    """Add the five-point Laplacian to the rate of change."""
    i, j = wp.tid()
    n = field.shape[0]
    if i == 0 or j == 0 or i == n - 1 or j == n - 1:
        return
    around = field[i - 1, j] + field[i + 1, j] + field[i, j - 1] + field[i, j + 1]
    rate[i, j] = rate[i, j] + coefficient * (around - 4.0 * field[i, j])


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


@wp.kernel
def hold(field: wp.array2d(dtype=float), value: float):
    """Give the cells on the four borders a fixed value."""
    k = wp.tid()
    n = field.shape[0]
    field[0, k] = value
    field[n - 1, k] = value
    field[k, 0] = value
    field[k, n - 1] = value


@wp.kernel
def row_residual(rate: wp.array2d(dtype=float), norms: wp.array(dtype=float)):
    """The norm of the rate of change in each row, by compensated summation."""
    i = wp.tid()
    total = float(0.0)
    lost = float(0.0)
    for j in range(rate.shape[1]):
        term = rate[i, j] * rate[i, j] - lost
        longer = total + term
        lost = (longer - total) - term
        total = longer
    norms[i] = wp.sqrt(total)

"""How far the field is from a steady state. Compiled without fast math: convergence is judged by it."""

import numpy as np
import warp as wp


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


def residual(rate: wp.array) -> float:
    """The largest norm of a row of `rate`."""
    norms = wp.zeros(rate.shape[0], dtype=float, device=rate.device)
    wp.launch(row_residual, dim=len(norms), inputs=[rate, norms], device=rate.device)
    return float(np.max(norms.numpy()))

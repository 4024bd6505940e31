"""How far the field is from a steady state."""

import numpy as np
import warp as wp

from .kernels import row_residual


def residual(rate: wp.array) -> float:
    """The largest norm of a row of `rate`."""
    norms = wp.zeros(rate.shape[0], dtype=float, device=rate.device)
    wp.launch(row_residual, dim=len(norms), inputs=[rate, norms], device=rate.device)
    return float(np.max(norms.numpy()))

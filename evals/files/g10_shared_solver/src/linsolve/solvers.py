"""What programs call."""

import warp as wp

from .operators import apply_operator, row_norms
from .smoothers import jacobi, richardson

WEIGHT = 0.8
STEP = 0.2


def solve(conductivity: wp.array, rhs: wp.array, sweeps: int) -> wp.array:
    """An approximate solution after `sweeps` pairs of smoothing steps from zero, of the shape of `rhs`.

    Every iterate has an array of its own, so that a tape may record the call.
    """
    gradients = conductivity.requires_grad or rhs.requires_grad
    x = wp.zeros(rhs.shape, dtype=float, device=rhs.device, requires_grad=gradients)
    for _ in range(sweeps):
        for kernel, factor in ((jacobi, WEIGHT), (richardson, STEP)):
            after = wp.empty(rhs.shape, dtype=float, device=rhs.device, requires_grad=gradients)
            wp.launch(kernel, dim=rhs.shape, inputs=[conductivity, rhs, x, factor, after], device=rhs.device)
            x = after
    return x


def residual(conductivity: wp.array, rhs: wp.array, x: wp.array) -> wp.array:
    """The sum of squares of the defect in each row of the grid."""
    gradients = x.requires_grad
    defect = wp.zeros(rhs.shape, dtype=float, device=rhs.device, requires_grad=gradients)
    norms = wp.zeros(rhs.shape[0], dtype=float, device=rhs.device, requires_grad=gradients)
    wp.launch(apply_operator, dim=rhs.shape, inputs=[conductivity, rhs, x, defect], device=rhs.device)
    wp.launch(row_norms, dim=rhs.shape[0], inputs=[defect, norms], device=rhs.device)
    return norms

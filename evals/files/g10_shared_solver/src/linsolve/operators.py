"""The operator of the problem, and norms."""

import warp as wp

from .smoothers import face, inside


@wp.kernel
def apply_operator(
    conductivity: wp.array2d(dtype=float),
    rhs: wp.array2d(dtype=float),
    x: wp.array2d(dtype=float),
    defect: wp.array2d(dtype=float),
):
    """Right-hand side minus operator times x; zero on the border."""
    i, j = wp.tid()
    if not inside(x, i, j):
        defect[i, j] = 0.0
        return
    north = face(conductivity, i, j, i - 1, j) * (x[i - 1, j] - x[i, j])
    south = face(conductivity, i, j, i + 1, j) * (x[i + 1, j] - x[i, j])
    west = face(conductivity, i, j, i, j - 1) * (x[i, j - 1] - x[i, j])
    east = face(conductivity, i, j, i, j + 1) * (x[i, j + 1] - x[i, j])
    defect[i, j] = rhs[i, j] + north + south + west + east


@wp.kernel
def row_norms(values: wp.array2d(dtype=float), norms: wp.array(dtype=float)):
    """The sum of squares of each row."""
    i = wp.tid()
    total = float(0.0)
    for j in range(values.shape[1]):
        total = total + values[i, j] * values[i, j]
    norms[i] = total

"""Smoothers: each reads one iterate and writes the next."""

import warp as wp

wp.set_module_options({"enable_backward": False})


@wp.func
def face(conductivity: wp.array2d(dtype=float), i: int, j: int, k: int, m: int) -> float:
    """Harmonic mean of the conductivities of two cells."""
    a = conductivity[i, j]
    b = conductivity[k, m]
    return 2.0 * a * b / (a + b)


@wp.func
def inside(x: wp.array2d(dtype=float), i: int, j: int) -> bool:
    """Whether a cell is not on the border."""
    return i > 0 and j > 0 and i < x.shape[0] - 1 and j < x.shape[1] - 1


@wp.kernel
def jacobi(
    conductivity: wp.array2d(dtype=float),
    rhs: wp.array2d(dtype=float),
    x: wp.array2d(dtype=float),
    weight: float,
    after: wp.array2d(dtype=float),
):
    """A damped Jacobi step; the border stays zero."""
    i, j = wp.tid()
    if not inside(x, i, j):
        after[i, j] = 0.0
        return
    north = face(conductivity, i, j, i - 1, j)
    south = face(conductivity, i, j, i + 1, j)
    west = face(conductivity, i, j, i, j - 1)
    east = face(conductivity, i, j, i, j + 1)
    around = north * x[i - 1, j] + south * x[i + 1, j] + west * x[i, j - 1] + east * x[i, j + 1]
    update = (rhs[i, j] + around) / (north + south + west + east)
    after[i, j] = (1.0 - weight) * x[i, j] + weight * update


@wp.kernel
def richardson(
    conductivity: wp.array2d(dtype=float),
    rhs: wp.array2d(dtype=float),
    x: wp.array2d(dtype=float),
    step: float,
    after: wp.array2d(dtype=float),
):
    """A Richardson step; the border stays zero."""
    i, j = wp.tid()
    if not inside(x, i, j):
        after[i, j] = 0.0
        return
    north = face(conductivity, i, j, i - 1, j) * (x[i - 1, j] - x[i, j])
    south = face(conductivity, i, j, i + 1, j) * (x[i + 1, j] - x[i, j])
    west = face(conductivity, i, j, i, j - 1) * (x[i, j - 1] - x[i, j])
    east = face(conductivity, i, j, i, j + 1) * (x[i, j + 1] - x[i, j])
    after[i, j] = x[i, j] + step * (rhs[i, j] + north + south + west + east)

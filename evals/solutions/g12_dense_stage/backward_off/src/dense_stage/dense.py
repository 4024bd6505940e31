"""Factorisation and solution of the element systems."""

import warp as wp

from .types import mat66, vec6

wp.set_module_options({"enable_backward": False})


@wp.kernel
def factorise(systems: wp.array(dtype=mat66), factors: wp.array(dtype=mat66)):
    """The lower factor of Cholesky's decomposition of each system."""
    e = wp.tid()
    a = systems[e]
    factor = mat66()
    for j in range(6):
        diagonal = a[j, j]
        for k in range(j):
            diagonal = diagonal - factor[j, k] * factor[j, k]
        root = wp.sqrt(diagonal)
        factor[j, j] = root
        for i in range(j + 1, 6):
            below = a[i, j]
            for k in range(j):
                below = below - factor[i, k] * factor[j, k]
            factor[i, j] = below / root
    factors[e] = factor


@wp.kernel
def substitute(factors: wp.array(dtype=mat66), loads: wp.array(dtype=vec6), solutions: wp.array(dtype=vec6)):
    """Solve each system, forward and backward, with its factor."""
    e = wp.tid()
    factor = factors[e]
    b = loads[e]
    y = vec6()
    for i in range(6):
        value = b[i]
        for k in range(i):
            value = value - factor[i, k] * y[k]
        y[i] = value / factor[i, i]
    x = vec6()
    for m in range(6):
        i = 5 - m
        value = y[i]
        for k in range(i + 1, 6):
            value = value - factor[k, i] * x[k]
        x[i] = value / factor[i, i]
    solutions[e] = x


@wp.kernel
def element_energy(loads: wp.array(dtype=vec6), solutions: wp.array(dtype=vec6), energies: wp.array(dtype=float)):
    """Half the work of the load of each element."""
    e = wp.tid()
    energies[e] = 0.5 * wp.dot(loads[e], solutions[e])

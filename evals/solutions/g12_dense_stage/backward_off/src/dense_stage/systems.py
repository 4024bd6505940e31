"""From deformations to element systems."""

import warp as wp

from .types import mat66, vec6

wp.set_module_options({"enable_backward": False})

STIFFNESS = 4.0
COUPLING = 0.35


@wp.func
def strain(deformation: wp.mat33) -> vec6:
    """Green's strain in Voigt order: xx, yy, zz, yz, xz, xy."""
    c = wp.transpose(deformation) * deformation
    return vec6(
        0.5 * (c[0, 0] - 1.0),
        0.5 * (c[1, 1] - 1.0),
        0.5 * (c[2, 2] - 1.0),
        c[1, 2],
        c[0, 2],
        c[0, 1],
    )


@wp.kernel
def assemble(deformations: wp.array(dtype=wp.mat33), systems: wp.array(dtype=mat66)):
    """A symmetric, positive definite system for each element, that depends on its strain."""
    e = wp.tid()
    s = strain(deformations[e])
    system = mat66()
    for i in range(6):
        for j in range(6):
            value = COUPLING * s[i] * s[j]
            if i == j:
                value = value + STIFFNESS + s[i] * s[i]
            system[i, j] = value
    systems[e] = system


@wp.kernel
def load(deformations: wp.array(dtype=wp.mat33), loads: wp.array(dtype=vec6)):
    """The load of each element: its strain, and a constant."""
    e = wp.tid()
    s = strain(deformations[e])
    loads[e] = s + vec6(1.0, 0.5, -0.25, 0.1, -0.1, 0.05)

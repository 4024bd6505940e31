"""A library that creates its module when it is imported."""

import warp as wp


@wp.kernel
def scale(x: wp.array(dtype=float), factor: float):
    i = wp.tid()
    x[i] = x[i] * factor

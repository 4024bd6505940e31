"""The filter of the levels, launched in blocks of 128."""

import warp as wp

from .pixels import clamped

wp.set_module_options({"fast_math": True})


@wp.kernel
def blur(source: wp.array2d(dtype=float), weights: wp.array(dtype=float), target: wp.array2d(dtype=float)):
    """A separable filter of odd size, applied in both directions at once."""
    y, x = wp.tid()
    radius = weights.shape[0] / 2
    total = float(0.0)
    for i in range(weights.shape[0]):
        row = float(0.0)
        for j in range(weights.shape[0]):
            row += weights[j] * clamped(source, y + i - radius, x + j - radius)
        total += weights[i] * row
    target[y, x] = total

"""From one level to the next, launched in blocks of 256."""

import warp as wp

from .pixels import clamped

wp.set_module_options({"fast_math": True})


@wp.kernel
def shrink(source: wp.array2d(dtype=float), target: wp.array2d(dtype=float)):
    """Halve an image in both directions."""
    y, x = wp.tid()
    top = clamped(source, 2 * y, 2 * x) + clamped(source, 2 * y, 2 * x + 1)
    bottom = clamped(source, 2 * y + 1, 2 * x) + clamped(source, 2 * y + 1, 2 * x + 1)
    target[y, x] = 0.25 * (top + bottom)

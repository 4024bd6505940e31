"""Functions that the kernels share."""

import warp as wp


@wp.func
def clamped(image: wp.array2d(dtype=float), y: int, x: int):
    """The pixel, or the nearest one of the image."""
    return image[wp.clamp(y, 0, image.shape[0] - 1), wp.clamp(x, 0, image.shape[1] - 1)]

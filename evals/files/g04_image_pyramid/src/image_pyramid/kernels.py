"""Kernels of the pyramid."""

import warp as wp

TO_LINEAR_BLOCK = 64
BLUR_BLOCK = 128
SHRINK_BLOCK = 256


@wp.func
def clamped(image: wp.array2d(dtype=float), y: int, x: int):
    """The pixel, or the nearest one of the image."""
    return image[wp.clamp(y, 0, image.shape[0] - 1), wp.clamp(x, 0, image.shape[1] - 1)]


@wp.kernel
def to_linear(raw: wp.array2d(dtype=float), black: float, gamma: float, linear: wp.array2d(dtype=float)):
    """Sensor counts as linear light between 0 and 1."""
    y, x = wp.tid()
    light = wp.clamp((raw[y, x] - black) / (4095.0 - black), 0.0, 1.0)
    linear[y, x] = wp.pow(light, gamma)


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


@wp.kernel
def shrink(source: wp.array2d(dtype=float), target: wp.array2d(dtype=float)):
    """Halve an image in both directions."""
    y, x = wp.tid()
    top = clamped(source, 2 * y, 2 * x) + clamped(source, 2 * y, 2 * x + 1)
    bottom = clamped(source, 2 * y + 1, 2 * x) + clamped(source, 2 * y + 1, 2 * x + 1)
    target[y, x] = 0.25 * (top + bottom)

"""Sensor counts to linear light, and rows of regions: kernels that read a pixel once."""

import warp as wp

wp.set_module_options({"fast_math": True})


@wp.kernel
def to_linear(raw: wp.array2d(dtype=float), black: float, gamma: float, linear: wp.array2d(dtype=float)):
    """Sensor counts as linear light between 0 and 1."""
    y, x = wp.tid()
    light = wp.clamp((raw[y, x] - black) / (4095.0 - black), 0.0, 1.0)
    linear[y, x] = wp.pow(light, gamma)


@wp.kernel
def roi_rows(level: wp.array2d(dtype=float), left: int, top: int, width: int, rows: wp.array(dtype=wp.vec3)):
    """Sum, sum of squares and maximum of each row of a region."""
    row = wp.tid()
    total = float(0.0)
    squares = float(0.0)
    brightest = float(0.0)
    for i in range(width):
        value = level[top + row, left + i]
        total += value
        squares += value * value
        brightest = wp.max(brightest, value)
    rows[row] = wp.vec3(total, squares, brightest)

"""Statistics of regions that an operator draws."""

from typing import NamedTuple

import numpy as np
import warp as wp


class Region(NamedTuple):
    """A rectangle in pixels of the full level."""

    x: int
    y: int
    width: int
    height: int


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


def block_for(region):
    """Threads of a block for a region: as wide as the region, in whole warps."""
    return min(32 * ((region.width + 31) // 32), 1024)


def region_statistics(level, region, device):
    """Mean, standard deviation and maximum of a region.

    Args:
        level: 2-D Warp array of float32.
        region: a `Region` that lies within the level.
        device: the level's device.

    Returns:
        A dictionary of three floats, in linear light.
    """
    rows = wp.zeros(region.height, dtype=wp.vec3, device=device)
    wp.launch(
        roi_rows,
        dim=region.height,
        inputs=[level, region.x, region.y, region.width],
        outputs=[rows],
        block_dim=block_for(region),
        device=device,
    )
    sums = rows.numpy().astype(np.float64)
    pixels = region.width * region.height
    mean = sums[:, 0].sum() / pixels
    variance = max(sums[:, 1].sum() / pixels - mean * mean, 0.0)
    return {"mean": float(mean), "deviation": float(variance**0.5), "maximum": float(sums[:, 2].max())}

"""Statistics of regions that an operator draws."""

from typing import NamedTuple

import numpy as np
import warp as wp

from .tone import roi_rows


class Region(NamedTuple):
    """A rectangle in pixels of the full level."""

    x: int
    y: int
    width: int
    height: int


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

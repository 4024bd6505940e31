"""Numbers of the pyramid, and what must stay about its block sizes, its fast math and the region kernel."""

import json

import numpy as np
import warp as wp

launched = []
real_launch = wp.launch


def noted_launch(kernel, *args, **kwargs):
    """Note a launch with its module and that module's options at the time, then do it."""
    options = kernel.module.options
    launched.append((kernel.key, kernel.module.name, kwargs.get("block_dim"), bool(options.get("fast_math"))))
    return real_launch(kernel, *args, **kwargs)


wp.launch = noted_launch

import image_pyramid
from image_pyramid import kernels

SHAPE = (64, 96)
BLOCKS = {"to_linear": 64, "blur": 128, "shrink": 256}

rng = np.random.default_rng(4)
frame = rng.uniform(70.0, 4000.0, SHAPE).astype(np.float32)
pyramid = image_pyramid.Pyramid(SHAPE, 3, "cpu")
levels = pyramid.build(frame)
built = [entry for entry in launched if entry[0] in BLOCKS]
launched.clear()
regions = [image_pyramid.Region(4, 6, 40, 20), image_pyramid.Region(0, 0, 96, 64)]
statistics = [image_pyramid.region_statistics(levels[0], region, "cpu") for region in regions]

of_pyramid = {module for _, module, _, _ in built}
of_regions = {module for _, module, _, _ in launched}
after_calibration = built[1:]
print(
    json.dumps(
        {
            "numeric": {
                "black": [pyramid.black],
                "levels": [float(value) for level in levels for value in level.numpy().ravel()[::37]],
                "regions": [found[name] for found in statistics for name in ("mean", "deviation", "maximum")],
            },
            "trap": {
                "roi-apart": len(launched) == 2 and not of_pyramid & of_regions,
                "roi-precise": len(launched) == 2 and not any(fast for *_, fast in launched),
                "roi-block-follows-region": [block for _, _, block, _ in launched] == [64, 96],
                "block-dims-kept": all(block == BLOCKS[key] for key, _, block, _ in built),
                "fast-math-kept": bool(after_calibration) and all(fast for *_, fast in after_calibration),
                "kernels-importable": all(getattr(kernels, name).key == name for name in BLOCKS),
            },
        }
    )
)

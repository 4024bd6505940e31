"""Numbers of the layer, and whether requests still get MathDx and other packages their own setting."""

import json

import numpy as np
import warp as wp

launched = []


def noted(launch):
    """A launch that notes the kernel and whether its module links MathDx at the time."""

    def noted_launch(kernel, *args, **kwargs):
        own = kernel.module.options.get("enable_mathdx_gemm")
        launched.append((kernel.key, wp.config.enable_mathdx_gemm if own is None else own))
        return launch(kernel, *args, **kwargs)

    return noted_launch


wp.launch, wp.launch_tiled = noted(wp.launch), noted(wp.launch_tiled)

import mixed_precision

rng = np.random.default_rng(9)
layer = mixed_precision.Layer(rng.normal(size=(32, 16)).astype(np.float32), "cpu")
lengths = layer.calibrate()
items = rng.normal(size=(32, 32)).astype(np.float16)
ranks = layer.rank(items)
requests = [linked for key, linked in launched if key == "rank_tiles"]
print(
    json.dumps(
        {
            "numeric": {
                "lengths": [float(value) for value in lengths],
                "ranks": [float(value) for value in ranks.ravel()],
            },
            "trap": {
                "requests-with-mathdx": len(requests) == 1 and all(requests),
                "config-untouched": wp.config.enable_mathdx_gemm is True,
                "precisions-kept": lengths.dtype == np.float32 and ranks.dtype == np.float16,
            },
        }
    )
)

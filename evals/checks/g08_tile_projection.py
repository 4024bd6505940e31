"""Numbers of a batch, and whether the relink command still throws away what it is there to throw away."""

import json
import runpy
import sys
import tempfile
from pathlib import Path

import numpy as np
import warp as wp

cache = tempfile.TemporaryDirectory()
wp.config.kernel_cache_dir = cache.name
wp.init()
folder = Path(wp.config.kernel_cache_dir)

import tile_projection


def mark():
    """A link and a compiled kernel in the caches, as an older toolkit could have left them."""
    link = folder / "lto" / "0123456789abcdef.lto"
    kernel = folder / "wp_older_0123456"
    link.parent.mkdir(parents=True, exist_ok=True)
    link.write_bytes(b"older")
    kernel.mkdir(exist_ok=True)
    return link, kernel


def compiled():
    """Folders of this package's compiled modules."""
    return {path.name for path in folder.glob("wp_tile_projection*")}


rng = np.random.default_rng(8)
features = rng.normal(size=(64, 32)).astype(np.float32)
projected, scores = tile_projection.run_batch(features, "cpu")
before = compiled()

link, kernel = mark()
tile_projection.relink("cpu")
by_function = not link.exists(), not kernel.exists(), compiled() == before

link, kernel = mark()
sys.argv = ["tile_projection", "relink", "--device", "cpu"]
runpy.run_module("tile_projection", run_name="__main__", alter_sys=True)
by_command = not link.exists(), not kernel.exists(), compiled() == before

print(
    json.dumps(
        {
            "numeric": {
                "projected": [float(value) for value in projected.ravel()],
                "scores": [float(value) for value in scores.ravel()],
            },
            "trap": {
                "relink-clears-links": by_function[0] and by_command[0],
                "relink-clears-kernels": by_function[1] and by_command[1],
                "relink-builds": bool(before) and by_function[2] and by_command[2],
            },
        }
    )
)

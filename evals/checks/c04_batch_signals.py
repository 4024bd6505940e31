"""Results of every stage, and whether `rebuild` throws compiled kernels away and compiles them again."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path("src").resolve()))

from batch_signals import Batch, signals


def rebuild(root):
    """Run the maintenance command with all that can hold kernels below `root`."""
    places = dict.fromkeys(("HOME", "TMPDIR", "WARP_CACHE_PATH", "XDG_CACHE_HOME"), root)
    command = [sys.executable, "-m", "batch_signals", "rebuild", "--device", "cpu"]
    subprocess.run(command, env={**os.environ, **places}, stdout=subprocess.DEVNULL, check=True)


def compiled(root):
    """Objects of this package below `root` and the working directory: (inode, time of the last change) by path."""
    found = [path for folder in (root, ".") for path in Path(folder).rglob("*batch_signals*.o")]
    return {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in found}


batch = Batch(6, 64, "cpu")
numeric = {}
for scale in (1.0, -2.5):
    stages = batch.process((signals.synthetic(6, 64) * scale).astype(np.float32))
    numeric |= {f"{name}_{scale}": values.ravel().tolist() for name, values in vars(stages).items()}

with tempfile.TemporaryDirectory() as root:
    rebuild(root)
    before = compiled(root)
    rebuild(root)
    after = compiled(root)

trap = {
    "rebuild_clears": bool(before) and not before.items() & after.items(),
    "rebuild_compiles": bool(before) and len(after) == len(before),
}
print(json.dumps({"numeric": numeric, "trap": trap}))

"""The program builds and launches, then replaces itself: the same process id, and the build comes from the cache.

Truth: builds=1 cached_loads=1 launches=2
"""

import os
import sys

import warp as wp


@wp.kernel
def add(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] + 1.0


x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(add, dim=4, inputs=[x], device="cpu")  # site: build
print(x.numpy().tolist(), flush=True)
if sys.argv[1:] != ["again"]:
    os.execv(sys.executable, [sys.executable, __file__, "again"])

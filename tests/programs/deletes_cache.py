"""deletes_cache.py FOLDER: the program has a kernel cache of its own and deletes it when it ends.

Truth: builds=1 launches=1 warm_builds=1
"""

import atexit
import shutil
import sys

import warp as wp

CACHE = sys.argv[1]


@wp.kernel
def add(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] + 1.0


atexit.register(shutil.rmtree, CACHE)
wp.config.kernel_cache_dir = CACHE  # site: directory-set
x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(add, dim=4, inputs=[x], device="cpu")  # site: build
print(x.numpy().tolist())

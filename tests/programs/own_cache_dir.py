"""own_cache_dir.py FOLDER [--after-init]: the program has a kernel cache of its own, which stays as it was.

Truth: builds=1 launches=1
"""

import sys

import warp as wp


@wp.kernel
def add(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] + 1.0


if "--after-init" in sys.argv:
    wp.init()
wp.config.kernel_cache_dir = sys.argv[1]  # site: directory-set
x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(add, dim=4, inputs=[x], device="cpu")  # site: build
print(x.numpy().tolist())

"""The program switches Warp's caching off.

Truth: builds=1 launches=1 warm_builds=1
"""

import warp as wp


@wp.kernel
def add(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] + 1.0


wp.config.cache_kernels = False  # site: caching-off
x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(add, dim=4, inputs=[x], device="cpu")  # site: build
print(x.numpy().tolist())

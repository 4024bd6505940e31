"""`cache_kernels` is off.

Expect: CS-2 redundant module=- at=off
Expect (>=1.13): CS-12 hint module=- at=-
"""

import warp as wp

wp.config.cache_kernels = False  # here: off


@wp.kernel
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(first, dim=4, inputs=[x], device="cpu")

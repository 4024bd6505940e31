"""The program sets CUDA_CACHE_DISABLE, but nothing it does is for CUDA.

Expect (>=1.13): CS-12 hint module=- at=-
"""

import os

import warp as wp

os.environ["CUDA_CACHE_DISABLE"] = "1"


@wp.kernel
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(first, dim=4, inputs=[x], device="cpu")

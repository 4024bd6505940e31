"""Each start keeps its kernels in a new temporary directory.

Expect: CS-2 redundant module=- at=directory
Expect (>=1.13): CS-12 hint module=- at=-
"""

import tempfile

import warp as wp

with tempfile.TemporaryDirectory() as folder:
    wp.config.kernel_cache_dir = folder  # here: directory

    @wp.kernel
    def first(x: wp.array(dtype=float)):
        x[wp.tid()] = 1.0

    x = wp.zeros(4, dtype=float, device="cpu")
    wp.launch(first, dim=4, inputs=[x], device="cpu")

"""A module is loaded by name before its first launch. Before Warp 1.18 that builds block_dim 256, never launched.

Expect (<1.18): variant-never-launched redundant module=self at=load
Expect (>=1.13): CS-12 hint module=- at=-
"""

import warp as wp


@wp.kernel
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


wp.load_module(device="cpu")  # here: load
x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(first, dim=4, inputs=[x], device="cpu")

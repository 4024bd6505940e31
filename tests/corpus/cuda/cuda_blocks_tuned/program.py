"""A kernel is tried at two block_dims: each is a build of its own, and both are used.

Expect: CS-5 hint module=self at=launch
Run: together
"""

import warp as wp


@wp.kernel
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


x = wp.zeros(256, dtype=float, device="cpu")
for block_dim in (64, 128):
    wp.launch(first, dim=256, inputs=[x], device="cpu", block_dim=block_dim)  # here: launch

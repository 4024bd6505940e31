"""A kernel is tried at two block_dims: each is a build of its own, and both are used.

Needs: 1.18
Expect: CS-5 hint module=self at=launch
Expect: CS-12 hint module=- at=-
"""

import warp as wp

wp.config.enable_cpu_blocks = True


@wp.kernel
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


x = wp.zeros(128, dtype=float, device="cpu")
for block_dim in (32, 64):
    wp.launch(first, dim=128, inputs=[x], device="cpu", block_dim=block_dim)  # here: launch

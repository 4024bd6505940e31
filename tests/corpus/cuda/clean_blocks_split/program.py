"""Two kernels at a block_dim each, in a module each.

Run: together
"""

import warp as wp


@wp.kernel(module="clean_blocks_split.a")
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


@wp.kernel(module="clean_blocks_split.b")
def second(x: wp.array(dtype=float)):
    x[wp.tid()] = 2.0


x = wp.zeros(256, dtype=float, device="cpu")
wp.launch(first, dim=256, inputs=[x], device="cpu", block_dim=64)
wp.launch(second, dim=256, inputs=[x], device="cpu", block_dim=128)

"""Launches on the CPU ask for several block_dims; each of them means one, so there is one variant.

Run: together
"""

import warp as wp


@wp.kernel
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


x = wp.zeros(4, dtype=float, device="cpu")
for block_dim in (64, 128, 256):
    wp.launch(first, dim=4, inputs=[x], device="cpu", block_dim=block_dim)

"""A second kernel is defined after the module was launched, both at a block_dim of their own choice.

Expect: CS-1 redundant module=self at=late
Run: together
"""

import warp as wp


@wp.kernel
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


x = wp.zeros(256, dtype=float, device="cpu")
wp.launch(first, dim=256, inputs=[x], device="cpu", block_dim=64)


@wp.kernel
def second(x: wp.array(dtype=float)):  # here: late
    x[wp.tid()] = 2.0


wp.launch(second, dim=256, inputs=[x], device="cpu", block_dim=64)

"""Three kernels of one module run at a block_dim each: the module is built at all three, with all kernels.

Expect: CS-5 redundant module=self at=second
Run: together
"""

import warp as wp


@wp.kernel
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


@wp.kernel
def second(x: wp.array(dtype=float)):
    x[wp.tid()] = 2.0


@wp.kernel
def third(x: wp.array(dtype=float)):
    x[wp.tid()] = 3.0


x = wp.zeros(256, dtype=float, device="cpu")
wp.launch(first, dim=256, inputs=[x], device="cpu", block_dim=64)
wp.launch(second, dim=256, inputs=[x], device="cpu", block_dim=128)  # here: second
wp.launch(third, dim=256, inputs=[x], device="cpu")

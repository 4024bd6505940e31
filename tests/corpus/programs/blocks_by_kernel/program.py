"""Two kernels of one module run at a block_dim each: the module is built at both, with both kernels.

Needs: 1.18
Expect: CS-5 redundant module=self at=second
Expect: CS-12 hint module=- at=-
"""

import warp as wp

wp.config.enable_cpu_blocks = True


@wp.kernel
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


@wp.kernel
def second(x: wp.array(dtype=float)):
    x[wp.tid()] = 2.0


x = wp.zeros(128, dtype=float, device="cpu")
wp.launch(first, dim=128, inputs=[x], device="cpu", block_dim=32)
wp.launch(second, dim=128, inputs=[x], device="cpu", block_dim=64)  # here: second

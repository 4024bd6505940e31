"""A module is loaded ahead without a block_dim, which means one on the CPU; every launch asks for another.

Needs: 1.18
Expect: variant-never-launched redundant module=self at=load
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


wp.load_module(device="cpu")  # here: load
x = wp.zeros(128, dtype=float, device="cpu")
wp.launch(first, dim=128, inputs=[x], device="cpu", block_dim=32)
wp.launch(second, dim=128, inputs=[x], device="cpu", block_dim=32)

"""A module is preloaded at the default block_dim and launched at another one.

Expect: variant-never-launched redundant module=self at=load
Run: together
"""

import sys

import warp as wp


@wp.kernel
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


wp.load_module(sys.modules[__name__], device="cpu")  # here: load
x = wp.zeros(256, dtype=float, device="cpu")
wp.launch(first, dim=256, inputs=[x], device="cpu", block_dim=64)

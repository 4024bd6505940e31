"""A second kernel is defined after the module was launched.

Expect: CS-1 redundant module=self at=late
Run: together
"""

import warp as wp


@wp.kernel
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(first, dim=4, inputs=[x], device="cpu")


@wp.kernel
def second(x: wp.array(dtype=float)):  # here: late
    x[wp.tid()] = 2.0


wp.launch(second, dim=4, inputs=[x], device="cpu")

"""A Warp function is defined anew between two launches of the kernel that calls it.

Expect: CS-1 redundant module=self at=function
Run: together
"""

import warp as wp


@wp.func
def law(value: float):
    return value * 2.0


@wp.kernel
def apply(x: wp.array(dtype=float)):
    x[wp.tid()] = law(x[wp.tid()])


x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(apply, dim=4, inputs=[x], device="cpu")


@wp.func
def law(value: float):  # noqa: F811  # here: function
    return value * 3.0


wp.launch(apply, dim=4, inputs=[x], device="cpu")

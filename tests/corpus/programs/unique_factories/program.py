"""Three factories make a kernel each in a unique module: whether they are known at start, only their author knows.

Expect: CS-9 hint module=- at=first
Run: together
"""

import warp as wp


def make_scale(factor):
    @wp.kernel(module="unique")
    def scale(x: wp.array(dtype=float)):  # here: first
        x[wp.tid()] = x[wp.tid()] * wp.static(factor)

    return scale


def make_shift(offset):
    @wp.kernel(module="unique")
    def shift(x: wp.array(dtype=float)):
        x[wp.tid()] = x[wp.tid()] + wp.static(offset)

    return shift


def make_limit(high):
    @wp.kernel(module="unique")
    def limit(x: wp.array(dtype=float)):
        x[wp.tid()] = wp.min(x[wp.tid()], wp.static(high))

    return limit


x = wp.zeros(4, dtype=float, device="cpu")
for kernel in (make_scale(2.0), make_shift(1.0), make_limit(3.0)):
    wp.launch(kernel, dim=4, inputs=[x], device="cpu")

"""A kernel factory captures a number: each call redefines the kernel under the same key.

Expect: CS-1 redundant module=self at=kernel
Run: together
"""

import warp as wp


def make(factor):
    @wp.kernel
    def scale(x: wp.array(dtype=float)):  # here: kernel
        x[wp.tid()] = x[wp.tid()] * factor

    return scale


x = wp.zeros(4, dtype=float, device="cpu")
kept = []  # until the garbage collector runs, dropped kernels may live on or not
for number in (2.0, 3.0, 4.0):
    kept.append(make(wp.constant(number)))
    wp.launch(kept[-1], dim=4, inputs=[x], device="cpu")

"""A time stamp goes into a kernel as a static value, so every start builds another module.

Expect: identity-unstable redundant module=- at=kernel
Expect (>=1.13): CS-12 hint module=- at=-
"""

import time

import warp as wp

stamp = float(time.time_ns() % 1_000_000_007)


@wp.kernel
def first(x: wp.array(dtype=float)):  # here: kernel
    x[wp.tid()] = wp.static(stamp)


x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(first, dim=4, inputs=[x], device="cpu")

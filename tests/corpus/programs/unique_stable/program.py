"""Three stable kernels, each in a unique module.

Expect: CS-9 redundant module=- at=first
Run: together
"""

import warp as wp


@wp.kernel(module="unique")
def add(x: wp.array(dtype=float)):  # here: first
    x[wp.tid()] = x[wp.tid()] + 1.0


@wp.kernel(module="unique")
def double(x: wp.array(dtype=float)):
    x[wp.tid()] = x[wp.tid()] * 2.0


@wp.kernel(module="unique")
def negate(x: wp.array(dtype=float)):
    x[wp.tid()] = -x[wp.tid()]


x = wp.zeros(4, dtype=float, device="cpu")
for kernel in (add, double, negate):
    wp.launch(kernel, dim=4, inputs=[x], device="cpu")

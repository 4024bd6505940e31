"""Four stable kernels of one feature sit in a named module each.

Expect: CS-4 redundant module=- at=first
Run: together
"""

import warp as wp


@wp.kernel(module="named_modules.a")
def add(x: wp.array(dtype=float)):  # here: first
    x[wp.tid()] = x[wp.tid()] + 1.0


@wp.kernel(module="named_modules.b")
def subtract(x: wp.array(dtype=float)):
    x[wp.tid()] = x[wp.tid()] - 1.0


@wp.kernel(module="named_modules.c")
def double(x: wp.array(dtype=float)):
    x[wp.tid()] = x[wp.tid()] * 2.0


@wp.kernel(module="named_modules.d")
def halve(x: wp.array(dtype=float)):
    x[wp.tid()] = x[wp.tid()] * 0.5


x = wp.zeros(4, dtype=float, device="cpu")
for kernel in (add, subtract, double, halve):
    wp.launch(kernel, dim=4, inputs=[x], device="cpu")

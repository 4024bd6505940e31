"""A helper makes kernels in unique modules by default; all of its kernels are known at start.

Expect: CS-9 redundant module=- at=first
Run: together
"""

import warp as wp


def kernel_of(function, module="unique"):
    return wp.kernel(function, module=module)


def raise_by_one(x: wp.array(dtype=float)):  # here: first
    x[wp.tid()] = x[wp.tid()] + 1.0


def clamp(x: wp.array(dtype=float)):
    x[wp.tid()] = wp.clamp(x[wp.tid()], 0.0, 1.0)


def square(x: wp.array(dtype=float)):
    x[wp.tid()] = x[wp.tid()] * x[wp.tid()]


def root(x: wp.array(dtype=float)):
    x[wp.tid()] = wp.sqrt(x[wp.tid()])


x = wp.zeros(4, dtype=float, device="cpu")
for function in (raise_by_one, clamp, square, root):
    wp.launch(kernel_of(function), dim=4, inputs=[x], device="cpu")

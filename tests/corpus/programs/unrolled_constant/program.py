"""Loops up to a constant of the program.

Expect: CS-11 hint module=- at=kernel
"""

import warp as wp

wp.set_module_options({"enable_backward": False})
SIZE = wp.constant(12)


@wp.kernel
def convolve(x: wp.array2d(dtype=float), y: wp.array(dtype=float)):  # here: kernel
    total = float(0.0)
    for i in range(SIZE):
        for j in range(SIZE):
            total += x[i, j] * float(i - j)
    y[wp.tid()] = total


x = wp.zeros((12, 12), dtype=float, device="cpu")
y = wp.zeros(8, dtype=float, device="cpu")
wp.launch(convolve, dim=4, inputs=[x, y], device="cpu")


@wp.kernel(module="unrolled_constant.other", enable_backward=False)
def other(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


z = wp.zeros(4, dtype=float, device="cpu")
wp.launch(other, dim=4, inputs=[z], device="cpu")

"""Loops up to a constant of the program, with a high `max_unroll`.

Expect: CS-11 hint module=- at=kernel
Expect (>=1.13): CS-12 hint module=- at=-
"""

import warp as wp

wp.set_module_options({"enable_backward": False, "max_unroll": 32})
SIZE = wp.constant(24)


@wp.kernel
def convolve(x: wp.array2d(dtype=float), y: wp.array(dtype=float)):  # here: kernel
    total = float(0.0)
    for i in range(SIZE):
        for j in range(SIZE):
            total += x[i, j] * float(i - j)
    y[wp.tid()] = total


x = wp.zeros((24, 24), dtype=float, device="cpu")
y = wp.zeros(8, dtype=float, device="cpu")
wp.launch(convolve, dim=4, inputs=[x, y], device="cpu")

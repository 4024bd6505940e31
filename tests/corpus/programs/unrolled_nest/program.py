"""Three nested constant loops are unrolled to 128 copies of their body.

Expect: CS-11 hint module=- at=kernel
"""

import warp as wp

wp.set_module_options({"enable_backward": False})


@wp.kernel
def contract(x: wp.array(dtype=float), y: wp.array(dtype=float)):  # here: kernel
    total = float(0.0)
    for i in range(8):
        for j in range(8):
            for k in range(2):
                total += x[i] * x[j] * y[k]
    y[wp.tid()] = total


x, y = (wp.zeros(8, dtype=float, device="cpu") for _ in range(2))
wp.launch(contract, dim=4, inputs=[x, y], device="cpu")


@wp.kernel(module="unrolled_nest.other", enable_backward=False)
def other(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


z = wp.zeros(4, dtype=float, device="cpu")
wp.launch(other, dim=4, inputs=[z], device="cpu")

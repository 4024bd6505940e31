"""Three nested constant loops are unrolled to 512 copies of their body.

Expect: CS-11 hint module=- at=kernel
Expect (>=1.13): CS-12 hint module=- at=-
"""

import warp as wp

wp.set_module_options({"enable_backward": False})


@wp.kernel
def contract(x: wp.array(dtype=float), y: wp.array(dtype=float)):  # here: kernel
    total = float(0.0)
    for i in range(8):
        for j in range(8):
            for k in range(8):
                total += x[i] * x[j] * y[k]
    y[wp.tid()] = total


x, y = (wp.zeros(8, dtype=float, device="cpu") for _ in range(2))
wp.launch(contract, dim=4, inputs=[x, y], device="cpu")

"""The same nest with `max_unroll` 1: loops stay loops."""

import warp as wp

wp.set_module_options({"enable_backward": False, "max_unroll": 1})


@wp.kernel
def contract(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    total = float(0.0)
    for i in range(8):
        for j in range(8):
            for k in range(2):
                total += x[i] * x[j] * y[k]
    y[wp.tid()] = total


@wp.kernel(module="clean_small_unroll.other")
def other(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


x, y = (wp.zeros(8, dtype=float, device="cpu") for _ in range(2))
wp.launch(contract, dim=4, inputs=[x, y], device="cpu")
wp.launch(other, dim=4, inputs=[x], device="cpu")

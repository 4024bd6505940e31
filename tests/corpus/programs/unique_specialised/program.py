"""One kernel, made for three shapes in a unique module each: right where the shapes are run-time data, so only a hint.

Expect: CS-9 hint module=- at=kernel
Run: together
"""

import warp as wp


def make(size):
    @wp.kernel(module="unique")
    def gather(x: wp.array(dtype=float)):  # here: kernel
        total = float(0.0)
        for k in range(wp.static(size)):
            total += x[k]
        x[wp.tid()] = total

    return gather


x = wp.zeros(8, dtype=float, device="cpu")
for size in (2, 3, 4):
    wp.launch(make(size), dim=4, inputs=[x], device="cpu")

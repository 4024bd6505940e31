"""A library leaves backward code on in two modules of many kernels; this program only goes forward.

Expect: CS-10 hint module=- at=-
"""

import warp as wp


def make(number, module):
    def law(x: wp.array(dtype=wp.mat33), y: wp.array(dtype=wp.mat33)):
        i = wp.tid()
        a = x[i] * y[i] + wp.transpose(x[i]) * wp.static(float(number))
        b = wp.inverse(a) * x[i] - wp.cw_mul(a, y[i])
        y[i] = b * wp.determinant(a) + wp.transpose(b) / (1.0 + wp.trace(a))

    law.__name__ = law.__qualname__ = f"law_{number}"
    return wp.kernel(law, module=module)


laws = [make(number, f"stress_{number % 2}") for number in range(8)]
x, y = (wp.zeros(4, dtype=wp.mat33, device="cpu") for _ in range(2))
for law in laws:
    wp.launch(law, dim=4, inputs=[x, y], device="cpu")

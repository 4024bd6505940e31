"""Forty kernels with backward code, and nothing differentiates them.

Expect: CS-10 hint module=self at=-
"""

import warp as wp


def make(number):
    def law(x: wp.array(dtype=wp.vec3), y: wp.array(dtype=wp.vec3)):
        i = wp.tid()
        a = wp.cross(x[i], y[i]) * wp.static(float(number))
        b = wp.normalize(a + x[i]) - wp.cw_mul(a, y[i])
        y[i] = b * wp.dot(a, b) + wp.cross(b, x[i]) / (1.0 + wp.length(a))

    law.__name__ = law.__qualname__ = f"law_{number}"
    return wp.kernel(law)


laws = [make(number) for number in range(40)]
x, y = (wp.zeros(4, dtype=wp.vec3, device="cpu") for _ in range(2))
for law in laws:
    wp.launch(law, dim=4, inputs=[x, y], device="cpu")

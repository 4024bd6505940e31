"""A kernel factory is called again and again with the same argument: its kernel is the same, nothing is built again.

Run: together
"""

import warp as wp


def make(factor):
    @wp.kernel
    def scale(x: wp.array(dtype=float)):
        x[wp.tid()] = x[wp.tid()] * wp.static(factor)

    return scale


x = wp.zeros(4, dtype=float, device="cpu")
for _ in range(4):
    wp.launch(make(2.0), dim=4, inputs=[x], device="cpu")

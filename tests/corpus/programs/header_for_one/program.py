"""A header is built and serves a single module.

Needs: 1.13
Expect: CS-12 hint module=- at=-
"""

import warp as wp


@wp.kernel
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(first, dim=4, inputs=[x], device="cpu")

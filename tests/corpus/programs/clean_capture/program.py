"""Every kernel is loaded before the capture.

Needs: 1.13
Expect: CS-12 hint module=- at=-
"""

import warp as wp


@wp.kernel
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = x[wp.tid()] + 1.0


x = wp.zeros(4, dtype=float, device="cpu")
wp.load_module(device="cpu", block_dim=1)
with wp.ScopedCapture(device="cpu") as capture:
    wp.launch(first, dim=4, inputs=[x], device="cpu")
wp.capture_launch(capture.graph)

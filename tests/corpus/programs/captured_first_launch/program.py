"""The first launch of a kernel happens while a graph is being captured.

Needs: 1.13
Expect: load-in-capture hint module=- at=launch
Expect: CS-12 hint module=- at=-
"""

import warp as wp


@wp.kernel
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = x[wp.tid()] + 1.0


x = wp.zeros(4, dtype=float, device="cpu")
with wp.ScopedCapture(device="cpu") as capture:
    wp.launch(first, dim=4, inputs=[x], device="cpu")  # here: launch
for _ in range(3):
    wp.capture_launch(capture.graph)

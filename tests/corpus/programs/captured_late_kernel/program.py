"""One kernel is warmed up before the capture, the other of another module is forgotten.

Needs: 1.13
Expect: load-in-capture hint module=- at=launch
"""

import warp as wp


@wp.kernel
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = x[wp.tid()] + 1.0


@wp.kernel(module="captured_late_kernel.other")
def second(x: wp.array(dtype=float)):
    x[wp.tid()] = x[wp.tid()] * 2.0


x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(first, dim=4, inputs=[x], device="cpu")
with wp.ScopedCapture(device="cpu") as capture:
    wp.launch(first, dim=4, inputs=[x], device="cpu")
    wp.launch(second, dim=4, inputs=[x], device="cpu")  # here: launch
wp.capture_launch(capture.graph)

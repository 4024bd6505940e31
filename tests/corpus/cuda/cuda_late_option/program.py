"""An option that only CUDA knows is set after the first launch.

Expect: CS-3 redundant module=self at=option
Run: together
"""

import warp as wp


@wp.kernel
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = wp.sin(x[wp.tid()])


x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(first, dim=4, inputs=[x], device="cpu")
wp.set_module_options({"lineinfo": True})  # here: option
wp.launch(first, dim=4, inputs=[x], device="cpu")

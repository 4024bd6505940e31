"""All kernels at module scope, all options before the first launch, nothing changes later.

Run: together
"""

import warp as wp

wp.set_module_options({"fast_math": True, "enable_backward": False})


@wp.kernel
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


@wp.kernel
def second(x: wp.array(dtype=float)):
    x[wp.tid()] = 2.0


x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(first, dim=4, inputs=[x], device="cpu")
wp.launch(second, dim=4, inputs=[x], device="cpu")

"""A module option differs from the configuration because the program set it, and the configuration changes later.

Run: together
"""

import warp as wp

wp.set_module_options({"enable_backward": False, "max_unroll": 8})


@wp.kernel
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(first, dim=4, inputs=[x], device="cpu")
wp.config.max_unroll = 4
wp.config.max_unroll = 16

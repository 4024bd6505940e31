"""The configuration changes after the module was loaded, for modules that come later: they get it.

Run: together
"""

import warp as wp


@wp.kernel
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(first, dim=4, inputs=[x], device="cpu")
wp.config.enable_backward = False


@wp.kernel(module="clean_config_after_load.second")
def second(x: wp.array(dtype=float)):
    x[wp.tid()] = 2.0


wp.launch(second, dim=4, inputs=[x], device="cpu")
wp.launch(first, dim=4, inputs=[x], device="cpu")
wp.config.enable_backward = True

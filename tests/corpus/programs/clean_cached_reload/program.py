"""A module is unloaded and launched again: the cache has it, so nothing is built twice.

Run: together
"""

import warp as wp


@wp.kernel
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(first, dim=4, inputs=[x], device="cpu")
wp.get_module(__name__).unload()
wp.launch(first, dim=4, inputs=[x], device="cpu")

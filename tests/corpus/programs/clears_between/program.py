"""The cache is cleared between two launches: clearing unloads the module, and it is built again in the same process.

Expect: CS-2 redundant module=self at=clear
Expect: CS-2 redundant module=- at=clear
"""

import warp as wp


@wp.kernel
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(first, dim=4, inputs=[x], device="cpu")
wp.clear_kernel_cache()  # here: clear
wp.launch(first, dim=4, inputs=[x], device="cpu")

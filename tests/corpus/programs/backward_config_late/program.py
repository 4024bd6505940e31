"""`warp.config.enable_backward` is set after the module's first kernel is defined: it never arrives.

Expect: option-never-arrived redundant module=self at=assignment
Run: together
"""

import warp as wp


@wp.kernel
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


wp.config.enable_backward = False  # here: assignment
x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(first, dim=4, inputs=[x], device="cpu")
wp.config.enable_backward = True

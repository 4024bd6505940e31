"""`warp.config.lineinfo` is set by a debugging helper once the program runs.

Expect: option-never-arrived redundant module=self at=assignment
Run: together
"""

import warp as wp


@wp.kernel
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


def debug():
    wp.config.lineinfo = True  # here: assignment


x = wp.zeros(4, dtype=float, device="cpu")
debug()
wp.launch(first, dim=4, inputs=[x], device="cpu")
wp.config.lineinfo = False

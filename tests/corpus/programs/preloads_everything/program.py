"""All registered modules are loaded ahead, Warp's own too; the program uses one.

Expect: module-never-launched redundant module=- at=load
"""

import warp as wp


@wp.kernel
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


wp.force_load(device="cpu", block_dim=1, max_workers=0)  # here: load
x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(first, dim=4, inputs=[x], device="cpu")

"""Two modules are loaded ahead; this run needs one of them.

Expect: module-never-launched redundant module=preloads_one_too_many.other at=load
"""

import warp as wp


@wp.kernel
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


@wp.kernel(module="preloads_one_too_many.other")
def second(x: wp.array(dtype=float)):
    x[wp.tid()] = 2.0


wp.force_load(device="cpu", modules=[first.module, second.module], block_dim=1, max_workers=0)  # here: load
x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(first, dim=4, inputs=[x], device="cpu")

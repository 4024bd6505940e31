"""Everything is preloaded at Warp's default block_dim. Before Warp 1.18 no launch on the CPU uses that build.

Expect (<1.18): variant-never-launched redundant module=force_load_all.a at=load
Expect (<1.18): variant-never-launched redundant module=force_load_all.b at=load
"""

import warp as wp


@wp.kernel(module="force_load_all.a")
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


@wp.kernel(module="force_load_all.b")
def second(x: wp.array(dtype=float)):
    x[wp.tid()] = 2.0


wp.force_load(device="cpu", modules=[first.module, second.module], max_workers=0)  # here: load
x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(first, dim=4, inputs=[x], device="cpu")
wp.launch(second, dim=4, inputs=[x], device="cpu")

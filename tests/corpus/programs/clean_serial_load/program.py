"""Two modules are loaded for the CPU by one worker before their first launch."""

import warp as wp


@wp.kernel(module="clean_serial_load.a")
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


@wp.kernel(module="clean_serial_load.b")
def second(x: wp.array(dtype=float)):
    x[wp.tid()] = 2.0


wp.force_load(device="cpu", modules=[first.module, second.module], block_dim=1, max_workers=1)
x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(first, dim=4, inputs=[x], device="cpu")
wp.launch(second, dim=4, inputs=[x], device="cpu")

"""Two modules are loaded for the CPU on two threads at the same time.

Expect: CS-8 hint module=- at=load
Expect: builds-overlapped hint module=- at=load
Expect (>=1.13): CS-12 hint module=- at=-
"""

import warp as wp


@wp.kernel(module="parallel_first_loads.a")
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


@wp.kernel(module="parallel_first_loads.b")
def second(x: wp.array(dtype=float)):
    x[wp.tid()] = 2.0


wp.force_load(device="cpu", modules=[first.module, second.module], block_dim=1, max_workers=2)  # here: load
x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(first, dim=4, inputs=[x], device="cpu")
wp.launch(second, dim=4, inputs=[x], device="cpu")

"""Loads for the CPU are asked for with two workers; here only one module is left to load, so nothing overlaps yet.

Expect: cpu-parallel-load hint module=- at=load
Expect (>=1.13): CS-12 hint module=- at=-
"""

import warp as wp


@wp.kernel(module="workers_for_the_cpu.a")
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


@wp.kernel(module="workers_for_the_cpu.b")
def second(x: wp.array(dtype=float)):
    x[wp.tid()] = 2.0


x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(first, dim=4, inputs=[x], device="cpu")
wp.force_load(device="cpu", modules=[first.module, second.module], block_dim=1, max_workers=2)  # here: load
wp.launch(second, dim=4, inputs=[x], device="cpu")

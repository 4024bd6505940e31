"""Preloads that ask for a block_dim, on the calling thread and on workers, and one that asks for none.

On a CUDA device: `first` at block_dim 64, `second` and `third` at 128, `fourth` at 256.
"""

import warp as wp


@wp.kernel(module="first")
def fill(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


@wp.kernel(module="second")
def double(x: wp.array(dtype=float)):
    x[wp.tid()] *= 2.0


@wp.kernel(module="third")
def halve(x: wp.array(dtype=float)):
    x[wp.tid()] *= 0.5


@wp.kernel(module="fourth")
def shift(x: wp.array(dtype=float)):
    x[wp.tid()] += 1.0


wp.force_load("cpu", [fill.module], block_dim=64)
wp.force_load("cpu", [double.module, halve.module], block_dim=128, max_workers=2)
wp.force_load("cpu", [shift.module])
x = wp.zeros(32, dtype=float, device="cpu")
wp.launch(fill, 32, inputs=[x], device="cpu", block_dim=64)

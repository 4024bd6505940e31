"""What compiling for CUDA in between could disturb: a factory called three times whose kernels are dropped, an option
set late, generic instances that appear late, a deferred static expression, tiles, a tape, recorded launches.

On a CUDA device `__main__` is built at block_dim 64, 256 and 32, then again at the block_dim of the launch that follows
a change.
"""

import gc
from typing import Any

import numpy as np
import warp as wp

SCALES = (1.0, 2.0, 4.0)


@wp.func
def scaled(value: float, index: int):
    total = value * 0.0
    for k in range(3):
        total += wp.static(SCALES[k]) * value
    return total + float(index)


@wp.kernel
def base(values: wp.array(dtype=float)):
    i = wp.tid()
    values[i] = scaled(values[i], i)


@wp.kernel
def double(values: wp.array(dtype=float), out: wp.array(dtype=float)):
    i = wp.tid()
    out[i] = 2.0 * values[i]


@wp.kernel
def fill(values: wp.array(dtype=Any)):
    values[wp.tid()] = values.dtype(3)


@wp.kernel
def tiled(values: wp.array(dtype=float)):
    i = wp.tid()
    tile = wp.tile_load(values, shape=8, offset=i * 8)
    wp.tile_store(values, tile * 2.0, offset=i * 8)


def make(factor: float):
    @wp.kernel
    def made(values: wp.array(dtype=float)):
        i = wp.tid()
        values[i] += wp.static(factor)

    return made


def main():
    floats = wp.ones(64, dtype=float, device="cpu", requires_grad=True)
    out = wp.zeros(64, dtype=float, device="cpu", requires_grad=True)
    halves = wp.zeros(64, dtype=wp.float16, device="cpu")
    wp.launch(base, 64, inputs=[floats], device="cpu", block_dim=64)
    wp.launch(base, 64, inputs=[floats], device="cpu")
    wp.launch_tiled(tiled, dim=[8], inputs=[floats], device="cpu", block_dim=32)
    with wp.Tape() as tape:
        wp.launch(double, 64, inputs=[floats, out], device="cpu", block_dim=64)
    tape.backward(grads={out: wp.ones(64, dtype=float, device="cpu")})
    for factor in SCALES:
        wp.launch(make(factor), 64, inputs=[floats], device="cpu")
        gc.collect()  # when a dropped kernel goes away would differ from run to run otherwise
    wp.launch(fill, 64, inputs=[halves], device="cpu")
    wp.set_module_options({"fast_math": True})
    command = wp.launch(base, 64, inputs=[floats], device="cpu", block_dim=128, record_cmd=True)
    for _ in range(3):
        command.launch()
    print(np.round(floats.numpy()[:4], 3), floats.grad.numpy()[:4], halves.numpy()[:2])


main()

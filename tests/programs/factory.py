"""A kernel factory called three times; each kernel is launched and dropped before the next one is made.

Warp hashes the kernels that are alive, so whoever keeps a dropped one alive changes the hashes that are printed, one
for each call.

Truth: builds=3 rebuilds=2 launches=3
"""

import gc

import warp as wp


def make(power):
    @wp.kernel
    def raised(x: wp.array(dtype=float)):
        i = wp.tid()
        x[i] = wp.pow(x[i], wp.static(float(power)))

    return raised


def step(x, power):
    kernel = make(power)
    wp.launch(kernel, dim=4, inputs=[x], device="cpu")  # site: factory
    print(power, kernel.module.get_module_hash(1).hex())


x = wp.full(4, 1.5, dtype=float, device="cpu")
for power in (1, 2, 3):
    step(x, power)
    gc.collect()
print(x.numpy().tolist())

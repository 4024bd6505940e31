"""Two modules are loaded on two threads, then a kernel of each is launched. Needs Warp 1.11.

Before Warp 1.18 loading ahead builds block_dim 256, which no launch on the CPU uses: each module is built once more.

Truth: builds=2 launches=2
Truth before 1.18: builds=4 variants=2 launches=2
"""

import warp as wp


@wp.kernel(module="sums")
def add(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] + 1.0


@wp.kernel(module="products")
def double(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] * 2.0


wp.force_load(device="cpu", modules=[add.module, double.module], max_workers=2)  # site: force-load
x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(add, dim=4, inputs=[x], device="cpu")  # site: add
wp.launch(double, dim=4, inputs=[x], device="cpu")  # site: double
print(x.numpy().tolist())

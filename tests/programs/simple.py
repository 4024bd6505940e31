"""One kernel, launched three times. Warp prints its own lines, so a log tells of the build too.

Truth: builds=1 launches=3
"""

import warp as wp


@wp.kernel
def add(x: wp.array(dtype=float), amount: float):
    i = wp.tid()
    x[i] = x[i] + amount


x = wp.zeros(4, dtype=float, device="cpu")
for step in range(3):
    wp.launch(add, dim=4, inputs=[x, float(step)], device="cpu")  # site: build
print(x.numpy().tolist())

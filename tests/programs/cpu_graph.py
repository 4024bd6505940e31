"""Two launches are captured into a graph on the CPU (capturing runs nothing) and the graph is replayed three times.

Needs Warp 1.13.

Truth: builds=1 launches=6
"""

import warp as wp


@wp.kernel
def add(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] + 1.0


@wp.kernel
def double(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] * 2.0


x = wp.zeros(4, dtype=float, device="cpu")
wp.capture_begin(device="cpu")
wp.launch(add, dim=4, inputs=[x], device="cpu")  # site: build
wp.launch(double, dim=4, inputs=[x], device="cpu")
graph = wp.capture_end(device="cpu")
for _ in range(3):
    wp.capture_launch(graph)
print(x.numpy().tolist())

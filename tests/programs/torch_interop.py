"""Kernels work on memory of PyTorch tensors.

Truth: builds=1 launches=3
"""

import torch
import warp as wp


@wp.kernel
def scale(x: wp.array(dtype=float), factor: float):
    i = wp.tid()
    x[i] = x[i] * factor


wp.init()
tensor = torch.arange(8, dtype=torch.float32)
x = wp.from_torch(tensor)
for _ in range(3):
    wp.launch(scale, dim=8, inputs=[x, 2.0], device="cpu")
print(tensor.tolist(), wp.to_torch(x).sum().item())

"""Launch the kernel of the package once."""

import warp as wp

from .kernels import add

x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(add, dim=4, inputs=[x], device="cpu")  # site: build
print(x.numpy().tolist())

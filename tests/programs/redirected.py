"""Standard output is redirected to memory while the kernel is built.

Truth: builds=1 launches=1
"""

import contextlib
import io

import warp as wp


@wp.kernel
def add(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] + 1.0


with contextlib.redirect_stdout(io.StringIO()) as captured:
    x = wp.zeros(4, dtype=float, device="cpu")
    wp.launch(add, dim=4, inputs=[x], device="cpu")  # site: build
print(x.numpy().tolist(), captured.getvalue().count("load on device"))

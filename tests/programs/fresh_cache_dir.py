"""Every run makes a new folder for its kernel cache, so no run finds what another one built.

Truth: builds=1 launches=1 warm_builds=1
"""

import tempfile

import warp as wp


@wp.kernel
def add(x: wp.array(dtype=float)):
    i = wp.tid()
    x[i] = x[i] + 1.0


wp.config.kernel_cache_dir = tempfile.mkdtemp(prefix="kernels-")  # site: directory-set
x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(add, dim=4, inputs=[x], device="cpu")  # site: build
print(x.numpy().tolist())

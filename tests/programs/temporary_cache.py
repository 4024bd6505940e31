"""A child process gets a kernel cache of its own in a temporary directory, which is gone before the program ends.

Truth: builds=1 launches=1 warm_builds=1
"""

import os
import subprocess
import sys
import tempfile

if "--child" in sys.argv:
    import warp as wp

    @wp.kernel
    def add(x: wp.array(dtype=float)):
        i = wp.tid()
        x[i] = x[i] + 1.0

    x = wp.zeros(4, dtype=float, device="cpu")
    wp.launch(add, dim=4, inputs=[x], device="cpu")  # site: build
    print(x.numpy().tolist(), flush=True)
else:
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "WARP_CACHE_PATH": folder}
        subprocess.run([sys.executable, __file__, "--child"], check=True, env=environment)

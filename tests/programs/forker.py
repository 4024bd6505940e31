"""A forked child and then its parent build the same module with different instances of a generic kernel.

Each process built it once, so nothing was built again.

Truth: builds=2 launches=2
"""

import os
import sys
from typing import Any

import warp as wp


@wp.kernel
def twice(x: wp.array(dtype=Any)):
    i = wp.tid()
    x[i] = x[i] + x[i]


def work(dtype):
    x = wp.full(4, 3, dtype=dtype, device="cpu")
    wp.launch(twice, dim=4, inputs=[x], device="cpu")  # site: build
    print(dtype.__name__, x.numpy().tolist(), flush=True)


pid = os.fork()
if pid == 0:
    work(float)
    sys.exit(0)
_, status = os.waitpid(pid, 0)
work(int)
sys.exit(os.waitstatus_to_exitcode(status))

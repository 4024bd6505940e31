"""The program deletes its cache directory when it ends.

Expect: CS-2 redundant module=- at=directory
Expect (>=1.13): CS-12 hint module=- at=-
"""

import atexit
import os
import shutil
import tempfile

import warp as wp

folder = os.path.join(tempfile.gettempdir(), "deletes_at_exit_kernels")
atexit.register(shutil.rmtree, folder, ignore_errors=True)
wp.config.kernel_cache_dir = folder  # here: directory


@wp.kernel
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(first, dim=4, inputs=[x], device="cpu")

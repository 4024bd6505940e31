"""Imports a library that creates its module at import; with LATE in the environment it then sets an option, too late.

Truth: builds=1 launches=1
"""

import os

import library
import warp as wp

if os.environ.get("LATE"):
    wp.config.enable_backward = False  # site: late

x = wp.ones(4, dtype=float, device="cpu")
wp.launch(library.scale, dim=4, inputs=[x, 3.0], device="cpu")
print(x.numpy().tolist())

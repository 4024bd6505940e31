"""A generic kernel is launched with float, then with int.

Expect: CS-6 redundant module=self at=kernel
Run: together
"""

from typing import Any

import warp as wp


@wp.kernel
def twice(x: wp.array(dtype=Any)):  # here: kernel
    x[wp.tid()] = x[wp.tid()] + x[wp.tid()]


for kind in (float, int):
    x = wp.zeros(4, dtype=kind, device="cpu")
    wp.launch(twice, dim=4, inputs=[x], device="cpu")

"""A generic kernel meets a second type after the first launch.

Expect: CS-6 redundant module=self at=kernel
Run: together
"""

from typing import Any

import warp as wp


@wp.kernel
def fill(x: wp.array(dtype=Any), value: Any):  # here: kernel
    x[wp.tid()] = value


x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(fill, dim=4, inputs=[x, 1.0], device="cpu")
y = wp.zeros(4, dtype=wp.float64, device="cpu")
wp.launch(fill, dim=4, inputs=[y, wp.float64(1.0)], device="cpu")

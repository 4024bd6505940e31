"""A generic kernel meets vectors of three lengths, one after the other.

Expect: CS-6 redundant module=self at=kernel
Run: together
"""

from typing import Any

import warp as wp


@wp.kernel
def scale(x: wp.array(dtype=Any), factor: float):  # here: kernel
    x[wp.tid()] = x[wp.tid()] * factor


for kind in (wp.vec2, wp.vec3, wp.vec4):
    x = wp.zeros(4, dtype=kind, device="cpu")
    wp.launch(scale, dim=4, inputs=[x, 2.0], device="cpu")

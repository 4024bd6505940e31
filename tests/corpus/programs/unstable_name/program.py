"""A module is named after a random number, so every start builds another module.

Expect: identity-unstable redundant module=- at=launch
Expect (>=1.13): CS-12 hint module=- at=-
"""

import uuid

import warp as wp


@wp.kernel(module=f"session_{uuid.uuid4().hex}")
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(first, dim=4, inputs=[x], device="cpu")  # here: launch

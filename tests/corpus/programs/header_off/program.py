"""The precompiled header is off, and two modules parse Warp's header each.

Needs: 1.13
Expect: CS-12 hint module=- at=off
"""

import warp as wp

wp.config.use_precompiled_headers = False  # here: off


@wp.kernel(module="header_off.a")
def first(x: wp.array(dtype=float)):
    x[wp.tid()] = 1.0


@wp.kernel(module="header_off.b")
def second(x: wp.array(dtype=float)):
    x[wp.tid()] = 2.0


x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(first, dim=4, inputs=[x], device="cpu")
wp.launch(second, dim=4, inputs=[x], device="cpu")

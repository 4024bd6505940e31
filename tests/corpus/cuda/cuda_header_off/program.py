"""The precompiled header is off, and seven modules parse Warp's header each.

Needs: 1.13
Expect: CS-12 hint module=- at=off
Expect: CS-13 hint module=- at=launch
"""

import warp as wp

wp.config.use_precompiled_headers = False  # here: off


def make(module):
    @wp.kernel(module=module, enable_backward=False)
    def first(x: wp.array(dtype=float)):
        x[wp.tid()] = wp.sin(x[wp.tid()])

    @wp.kernel(module=module, enable_backward=False)
    def second(x: wp.array(dtype=float)):
        x[wp.tid()] = wp.cos(x[wp.tid()])

    return first, second


groups = [make(f"cuda_header_off.{name}") for name in "abcdefg"]
x = wp.zeros(4, dtype=float, device="cpu")
for group in groups:
    for kernel in group:
        wp.launch(kernel, dim=4, inputs=[x], device="cpu")  # here: launch

"""Three modules that do not depend on each other are built one after the other.

Expect: CS-13 hint module=- at=launch
"""

import warp as wp


def make(module):
    @wp.kernel(module=module, enable_backward=False)
    def first(x: wp.array(dtype=float)):
        x[wp.tid()] = wp.sin(x[wp.tid()])

    @wp.kernel(module=module, enable_backward=False)
    def second(x: wp.array(dtype=float)):
        x[wp.tid()] = wp.cos(x[wp.tid()])

    return first, second


groups = [make(f"built_one_by_one.{name}") for name in "abc"]
x = wp.zeros(4, dtype=float, device="cpu")
for group in groups:
    for kernel in group:
        wp.launch(kernel, dim=4, inputs=[x], device="cpu")  # here: launch

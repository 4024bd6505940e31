"""One kernel from a user's expression in a unique module: it keeps the shared module as it is.

Run: together
"""

import warp as wp


@wp.kernel
def shared(x: wp.array(dtype=float)):
    x[wp.tid()] = x[wp.tid()] + 1.0


def plugin(factor):
    @wp.kernel(module="unique")
    def custom(x: wp.array(dtype=float)):
        x[wp.tid()] = x[wp.tid()] * wp.static(factor)

    return custom


x = wp.zeros(4, dtype=float, device="cpu")
wp.launch(shared, dim=4, inputs=[x], device="cpu")
wp.launch(plugin(2.5), dim=4, inputs=[x], device="cpu")
wp.launch(shared, dim=4, inputs=[x], device="cpu")

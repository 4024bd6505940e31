"""Each pass of a loop evaluates `wp.static` to another value.

Expect: CS-1 redundant module=self at=kernel
Run: together
"""

import warp as wp


def step(x, order):
    @wp.kernel
    def power(x: wp.array(dtype=float)):  # here: kernel
        x[wp.tid()] = wp.pow(x[wp.tid()], wp.static(float(order)))

    wp.launch(power, dim=4, inputs=[x], device="cpu")
    return power


x = wp.full(4, 1.5, dtype=float, device="cpu")
kept = [step(x, order) for order in range(3)]

"""Doubles numbers, then adds one to them."""

import warp as wp


@wp.kernel
def double(values: wp.array(dtype=float)):
    i = wp.tid()
    values[i] = values[i] * 2.0


def run() -> list[float]:
    values = wp.full(4, 1.5, dtype=float, device="cpu")
    wp.launch(double, dim=4, inputs=[values], device="cpu")

    @wp.kernel
    def increment(values: wp.array(dtype=float)):
        i = wp.tid()
        values[i] = values[i] + 1.0

    wp.launch(increment, dim=4, inputs=[values], device="cpu")
    return values.numpy().tolist()

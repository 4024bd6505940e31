"""The quarterly audit of raw counters."""

from typing import Any

import warp as wp


@wp.kernel
def steps(counters: wp.array(dtype=Any), differences: wp.array(dtype=Any)):
    """How far a counter went from one reading to the next."""
    i = wp.tid()
    differences[i] = counters[i + 1] - counters[i]


def count_steps(counters, device):
    """Check counters that may only go forward.

    Args:
        counters: 1-D array of int32 or int64, readings of one counter.
        device: a Warp device.

    Returns:
        The numbers of steps that stood still and that went back.
    """
    readings = wp.array(counters, device=device)
    differences = wp.zeros(len(counters) - 1, dtype=readings.dtype, device=device)
    wp.launch(steps, dim=len(differences), inputs=[readings], outputs=[differences], device=device)
    found = differences.numpy()
    return {"still": int((found == 0).sum()), "back": int((found < 0).sum())}

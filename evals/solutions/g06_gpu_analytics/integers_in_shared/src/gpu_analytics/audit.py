"""The quarterly audit of raw counters."""

import warp as wp

from .sample_kernels import steps


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

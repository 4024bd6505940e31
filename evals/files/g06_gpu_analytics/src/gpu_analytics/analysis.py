"""What a job computes of a channel."""

import numpy as np
import warp as wp

from . import kernels

SAMPLE_BLOCK = 256
BLOCK_BLOCK = 64

PRECISIONS = {np.dtype(np.float32): wp.float32, np.dtype(np.float64): wp.float64}


def analyse(channel, device, radius=3, size=32):
    """Analyse a channel in the precision in which it arrives.

    Args:
        channel: 1-D float32 or float64 array, its length a multiple of `size`.
        device: a Warp device.
        radius: samples to either side that are averaged.
        size: samples of a block.

    Returns:
        A dictionary: `smoothed` and `scores` of the channel's length, `energies` and `peaks` one a block; arrays of
        the channel's type.

    Raises:
        TypeError: the channel is not of floating-point numbers.
    """
    precision = PRECISIONS.get(channel.dtype)
    if precision is None:
        raise TypeError(f"a channel is float32 or float64, not {channel.dtype}")
    with wp.ScopedDevice(device):
        samples = wp.array(channel, dtype=precision)
        smoothed = wp.zeros_like(samples)
        scores = wp.zeros_like(samples)
        energies = wp.zeros(len(channel) // size, dtype=precision)
        peaks = wp.zeros_like(energies)
        wp.launch(
            kernels.smooth, dim=len(channel), inputs=[samples, radius], outputs=[smoothed], block_dim=SAMPLE_BLOCK
        )
        found = smoothed.numpy()
        moments = wp.array([found.mean(), found.std()], dtype=precision)
        wp.launch(
            kernels.standardise, dim=len(channel), inputs=[smoothed, moments], outputs=[scores], block_dim=SAMPLE_BLOCK
        )
        wp.launch(kernels.energy, dim=len(energies), inputs=[scores, size], outputs=[energies], block_dim=BLOCK_BLOCK)
        wp.launch(kernels.peak, dim=len(peaks), inputs=[scores, size], outputs=[peaks], block_dim=BLOCK_BLOCK)
        return {
            "smoothed": found,
            "scores": scores.numpy(),
            "energies": energies.numpy(),
            "peaks": peaks.numpy(),
        }

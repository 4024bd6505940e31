"""The three stages of a batch; signals are rows of a two-dimensional array."""

import warp as wp

TAPS = 8


@wp.kernel
def low_pass(
    signals: wp.array2d(dtype=float),
    taps: wp.array(dtype=float),
    filtered: wp.array2d(dtype=float),
):
    """Convolve every row with the taps; samples before the first one count as zero."""
    row, column = wp.tid()
    total = float(0.0)
    for k in range(wp.static(TAPS)):
        if column >= k:
            total = total + taps[k] * signals[row, column - k]
    filtered[row, column] = total


@wp.kernel
def envelope(filtered: wp.array2d(dtype=float), decay: float, result: wp.array2d(dtype=float)):
    """Follow the peaks of the rectified signal, with an exponential decay."""
    row = wp.tid()
    level = float(0.0)
    for column in range(filtered.shape[1]):
        level = wp.max(wp.abs(filtered[row, column]), level * decay)
        result[row, column] = level


@wp.kernel
def decimate(result: wp.array2d(dtype=float), factor: int, thinned: wp.array2d(dtype=float)):
    """Replace every `factor` samples by their mean."""
    row, column = wp.tid()
    total = float(0.0)
    for k in range(factor):
        total = total + result[row, column * factor + k]
    thinned[row, column] = total / float(factor)

"""Generic kernels over channels of any floating-point type."""

from typing import Any

import warp as wp


@wp.kernel
def smooth(samples: wp.array(dtype=Any), radius: int, smoothed: wp.array(dtype=Any)):
    """The mean of each sample's neighbourhood; the channel is mirrored at its ends."""
    i = wp.tid()
    last = samples.shape[0] - 1
    total = samples.dtype(0.0)
    for k in range(-radius, radius + 1):
        j = wp.abs(i + k)
        if j > last:
            j = 2 * last - j
        total += samples[j]
    smoothed[i] = total / samples.dtype(2 * radius + 1)


@wp.kernel
def standardise(samples: wp.array(dtype=Any), moments: wp.array(dtype=Any), scores: wp.array(dtype=Any)):
    """Standard scores; `moments` holds the mean and the standard deviation."""
    i = wp.tid()
    scores[i] = (samples[i] - moments[0]) / moments[1]


@wp.kernel
def energy(scores: wp.array(dtype=Any), size: int, energies: wp.array(dtype=Any)):
    """Sum of squares of each block of `size` scores."""
    block = wp.tid()
    total = scores.dtype(0.0)
    for k in range(size):
        value = scores[block * size + k]
        total += value * value
    energies[block] = total


@wp.kernel
def peak(scores: wp.array(dtype=Any), size: int, peaks: wp.array(dtype=Any)):
    """Largest magnitude in each block of `size` scores."""
    block = wp.tid()
    largest = scores.dtype(0.0)
    for k in range(size):
        largest = wp.max(largest, wp.abs(scores[block * size + k]))
    peaks[block] = largest

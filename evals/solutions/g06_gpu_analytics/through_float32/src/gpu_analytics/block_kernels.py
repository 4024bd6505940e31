"""Generic kernels over blocks of samples, launched in blocks of 64."""

from typing import Any

import warp as wp


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


# The types of the ordinary job, before anything is launched. Warp keeps an instance as long as somebody holds it.
INSTANCES = [
    *(wp.overload(energy, [wp.array(dtype=precision), int, wp.array(dtype=precision)]) for precision in (wp.float32,)),
    *(wp.overload(peak, [wp.array(dtype=precision), int, wp.array(dtype=precision)]) for precision in (wp.float32,)),
]

"""Generic kernels over samples, launched in blocks of 256."""

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


# The types of the ordinary job, before anything is launched. Warp keeps an instance as long as somebody holds it.
INSTANCES = [
    *(wp.overload(smooth, [wp.array(dtype=precision), int, wp.array(dtype=precision)]) for precision in (wp.float32,)),
    *(
        wp.overload(standardise, [wp.array(dtype=precision), wp.array(dtype=precision), wp.array(dtype=precision)])
        for precision in (wp.float32,)
    ),
]

"""Kernels of the bank: one stencil for each radius, and what is done before and after it."""

import functools

import warp as wp

RADII = (1, 2, 3, 4, 5)


@functools.cache
def make_stencil(radius: int) -> wp.Kernel:
    """The kernel for a radius: the weighted mean of 2 * radius + 1 samples, mirrored at both ends."""
    taps = 2 * radius + 1

    @wp.kernel(enable_backward=False)
    def stencil(signal: wp.array(dtype=float), weights: wp.array(dtype=float), response: wp.array(dtype=float)):
        i = wp.tid()
        n = signal.shape[0]
        total = float(0.0)
        norm = float(0.0)
        for k in range(taps):
            j = wp.abs(i + k - radius)
            if j >= n:
                j = 2 * n - 2 - j
            weight = weights[k]
            total = total + weight * signal[j]
            norm = norm + wp.abs(weight)
        response[i] = total / norm

    return stencil


# These exist before anything is launched, so that the module is built once. Other radii are made when asked for.
for _radius in RADII:
    make_stencil(_radius)


@wp.kernel
def centre(signal: wp.array(dtype=float), mean: float, scale: float):
    """Subtract the mean and scale."""
    i = wp.tid()
    signal[i] = (signal[i] - mean) * scale


@wp.kernel
def squares(response: wp.array(dtype=float), energy: wp.array(dtype=float)):
    """The energy of every block of 64 samples."""
    block = wp.tid()
    total = float(0.0)
    for k in range(64):
        i = block * 64 + k
        if i < response.shape[0]:
            total = total + response[i] * response[i]
    energy[block] = total

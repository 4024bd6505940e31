"""Likelihoods by section of the recording."""

import warp as wp

SECTIONS = 16


@wp.kernel
def section_means(found: wp.array(dtype=float), size: int, means: wp.array(dtype=float)):
    """The mean of each section of `size` samples."""
    section = wp.tid()
    total = float(0.0)
    for k in range(size):
        total += found[section * size + k]
    means[section] = total / float(size)


@wp.kernel
def contrast(means: wp.array(dtype=float), contrasts: wp.array(dtype=float)):
    """Each section against those beside it."""
    i = wp.tid()
    beside = means[wp.max(i - 1, 0)] + means[wp.min(i + 1, means.shape[0] - 1)]
    contrasts[i] = means[i] - 0.5 * beside


def run(signal):
    """The contrast of each section, from likelihoods; the length is a multiple of `SECTIONS`."""
    means = wp.zeros(SECTIONS, dtype=float, device=signal.device, requires_grad=signal.requires_grad)
    contrasts = wp.zeros_like(means)
    size = len(signal) // SECTIONS
    wp.launch(section_means, dim=SECTIONS, inputs=[signal, size], outputs=[means], device=signal.device)
    wp.launch(contrast, dim=SECTIONS, inputs=[means], outputs=[contrasts], device=signal.device)
    return contrasts

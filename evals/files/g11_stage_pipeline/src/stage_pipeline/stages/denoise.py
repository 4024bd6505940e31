"""Outliers and noise."""

import warp as wp


@wp.kernel
def clip_spikes(signal: wp.array(dtype=float), clipped: wp.array(dtype=float)):
    """Hold each sample between its neighbours, give or take a little."""
    i = wp.tid()
    left = signal[wp.max(i - 1, 0)]
    right = signal[wp.min(i + 1, signal.shape[0] - 1)]
    lower = wp.min(left, right) - 0.05
    upper = wp.max(left, right) + 0.05
    clipped[i] = wp.clamp(signal[i], lower, upper)


@wp.kernel
def low_pass(signal: wp.array(dtype=float), radius: int, smooth: wp.array(dtype=float)):
    """A triangular filter."""
    i = wp.tid()
    scale = 1.0 / float((radius + 1) * (radius + 1))
    total = float(0.0)
    for k in range(-radius, radius + 1):
        j = wp.clamp(i + k, 0, signal.shape[0] - 1)
        total += scale * float(radius + 1 - wp.abs(k)) * signal[j]
    smooth[i] = total


def run(signal):
    """Denoise a signal in volts."""
    clipped = wp.zeros_like(signal)
    smooth = wp.zeros_like(signal)
    wp.launch(clip_spikes, dim=len(signal), inputs=[signal], outputs=[clipped], device=signal.device)
    wp.launch(low_pass, dim=len(signal), inputs=[clipped, 4], outputs=[smooth], device=signal.device)
    return smooth

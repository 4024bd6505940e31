"""How the signal moves."""

import warp as wp


@wp.kernel
def slope(signal: wp.array(dtype=float), slopes: wp.array(dtype=float)):
    """Central differences."""
    i = wp.tid()
    slopes[i] = 0.5 * (signal[wp.min(i + 1, signal.shape[0] - 1)] - signal[wp.max(i - 1, 0)])


@wp.kernel
def activity(signal: wp.array(dtype=float), slopes: wp.array(dtype=float), found: wp.array(dtype=float)):
    """Level and movement in one number."""
    i = wp.tid()
    found[i] = wp.sqrt(1.0e-6 + signal[i] * signal[i] + 25.0 * slopes[i] * slopes[i])


def run(signal):
    """The activity of a denoised signal."""
    slopes = wp.zeros_like(signal)
    found = wp.zeros_like(signal)
    wp.launch(slope, dim=len(signal), inputs=[signal], outputs=[slopes], device=signal.device)
    wp.launch(activity, dim=len(signal), inputs=[signal, slopes], outputs=[found], device=signal.device)
    return found

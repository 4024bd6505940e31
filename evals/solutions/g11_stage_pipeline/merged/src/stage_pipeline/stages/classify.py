"""How likely an event is."""

import warp as wp


@wp.kernel(module="stage_pipeline.kernels")
def logits(activity: wp.array(dtype=float), threshold: float, values: wp.array(dtype=float)):
    """Evidence for an event: positive above the threshold."""
    i = wp.tid()
    values[i] = 12.0 * (activity[i] - threshold)


@wp.kernel(module="stage_pipeline.kernels")
def likelihood(values: wp.array(dtype=float), found: wp.array(dtype=float)):
    """The logistic function."""
    i = wp.tid()
    found[i] = 1.0 / (1.0 + wp.exp(-values[i]))


def run(signal):
    """The likelihood of an event at each sample, from its activity."""
    values = wp.zeros_like(signal)
    found = wp.zeros_like(signal)
    wp.launch(logits, dim=len(signal), inputs=[signal, 0.35], outputs=[values], device=signal.device)
    wp.launch(likelihood, dim=len(signal), inputs=[values], outputs=[found], device=signal.device)
    return found

"""Counts to volts, without the recorder's drift."""

import warp as wp

VOLTS_PER_COUNT = wp.constant(0.0005)


@wp.kernel(module="stage_pipeline.kernels")
def to_volts(counts: wp.array(dtype=float), volts: wp.array(dtype=float)):
    """Scale counts to volts."""
    i = wp.tid()
    volts[i] = (counts[i] - 2048.0) * VOLTS_PER_COUNT


@wp.kernel(module="stage_pipeline.kernels")
def remove_drift(volts: wp.array(dtype=float), rate: float, level: wp.array(dtype=float)):
    """Take away a drift that grows with time."""
    i = wp.tid()
    level[i] = volts[i] - rate * float(i) / float(volts.shape[0])


def run(signal):
    """Ingest a recording in counts."""
    volts = wp.zeros_like(signal)
    level = wp.zeros_like(signal)
    wp.launch(to_volts, dim=len(signal), inputs=[signal], outputs=[volts], device=signal.device)
    wp.launch(remove_drift, dim=len(signal), inputs=[volts, 0.02], outputs=[level], device=signal.device)
    return level

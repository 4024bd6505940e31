"""Stages one after the other."""

import warp as wp

from .stages import classify, denoise, features, ingest, report

STAGES = {"ingest": ingest, "denoise": denoise, "features": features, "classify": classify, "report": report}


class Pipeline:
    """Some of the stages, in the order given.

    Args:
        names: keys of `STAGES`.

    Raises:
        ValueError: there is no such stage.
    """

    def __init__(self, names=tuple(STAGES)):
        unknown = [name for name in names if name not in STAGES]
        if unknown:
            raise ValueError(f"no stage {', '.join(unknown)}; there are {', '.join(STAGES)}")
        self.names = tuple(names)
        device = wp.get_preferred_device()
        modules = [wp.get_module(stage.__name__) for stage in STAGES.values()]
        wp.force_load(device=device, modules=modules, max_workers=len(modules) if device.is_cuda else 1)

    def run(self, signal):
        """Run the stages.

        Args:
            signal: 1-D Warp array of float32, its length a multiple of 16.

        Returns:
            What the last stage returns, on the signal's device.
        """
        for name in self.names:
            signal = STAGES[name].run(signal)
        return signal

"""One batch of signals, from raw samples to thinned envelopes."""

from dataclasses import dataclass

import numpy as np
import warp as wp

from . import kernels
from .signals import hann_taps

DECAY = 0.97
THINNING = 4


@dataclass
class Stages:
    """What every stage gave; the first two have the shape of the signals."""

    filtered: np.ndarray
    envelope: np.ndarray
    thinned: np.ndarray


class Batch:
    """Buffers for batches of one shape on one device."""

    def __init__(self, rows: int, columns: int, device: str) -> None:
        if columns % THINNING:
            raise ValueError(f"{columns} samples a signal cannot be thinned by {THINNING}")
        self.shape = (rows, columns)
        self.device = device
        self._taps = wp.array(hann_taps(kernels.TAPS), dtype=float, device=device)
        self._filtered = wp.zeros(self.shape, dtype=float, device=device)
        self._envelope = wp.zeros(self.shape, dtype=float, device=device)
        self._thinned = wp.zeros((rows, columns // THINNING), dtype=float, device=device)

    def process(self, signals: np.ndarray) -> Stages:
        """Run all stages on signals of the batch's shape."""
        source = wp.array(signals, dtype=float, device=self.device)
        self._launch(kernels.low_pass, self.shape, [source, self._taps, self._filtered])
        self._launch(kernels.envelope, self.shape[:1], [self._filtered, DECAY, self._envelope])
        self._launch(kernels.decimate, self._thinned.shape, [self._envelope, THINNING, self._thinned])
        results = (self._filtered, self._envelope, self._thinned)
        return Stages(*(array.numpy().copy() for array in results))

    def _launch(self, kernel: wp.Kernel, dim: tuple[int, ...], inputs: list) -> None:
        wp.launch(kernel, dim=dim, inputs=inputs, device=self.device)

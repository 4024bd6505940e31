"""Signals to try the package with."""

import numpy as np


def synthetic(rows: int, columns: int) -> np.ndarray:
    """Reproducible signals, float32 of shape (rows, columns): two tones and a slow drift."""
    row = np.arange(rows, dtype=np.float64)[:, None]
    time = np.arange(columns, dtype=np.float64)[None, :]
    tones = np.sin(0.11 * time + 0.3 * row) + 0.4 * np.sin(1.7 * time + row)
    return (tones + 0.001 * time).astype(np.float32)


def hann_taps(count: int) -> np.ndarray:
    """Taps of a low-pass filter, float32 of shape (count,), with sum 1."""
    taps = np.hanning(count + 2)[1:-1]
    return (taps / taps.sum()).astype(np.float32)

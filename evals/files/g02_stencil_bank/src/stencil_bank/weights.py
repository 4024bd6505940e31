"""Weights of stencils, and signals to try them on."""

import math

import numpy as np


def binomial(radius: int) -> np.ndarray:
    """Binomial weights, float32 of shape (2 * radius + 1,), with sum 1."""
    taps = [math.comb(2 * radius, k) for k in range(2 * radius + 1)]
    return (np.array(taps, dtype=np.float64) / 4.0**radius).astype(np.float32)


def chirp(count: int) -> np.ndarray:
    """A reproducible signal with rising frequency, float32 of shape (count,)."""
    time = np.linspace(0.0, 1.0, count)
    return (np.sin(40.0 * time + 300.0 * time**2) + 0.3 * time).astype(np.float32)

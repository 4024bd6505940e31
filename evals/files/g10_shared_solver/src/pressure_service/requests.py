"""Requests to try the service with."""

import numpy as np


def synthetic(size: int) -> tuple[np.ndarray, np.ndarray]:
    """A source beside a sink, and a permeability with a ridge; float32 of shape (size, size)."""
    axis = np.linspace(0.0, 1.0, size)
    x, y = np.meshgrid(axis, axis, indexing="ij")
    source = np.exp(-80.0 * ((x - 0.3) ** 2 + (y - 0.4) ** 2))
    sink = np.exp(-80.0 * ((x - 0.7) ** 2 + (y - 0.6) ** 2))
    permeability = 1.0 + 0.5 * np.exp(-60.0 * (x - y) ** 2)
    return (source - sink).astype(np.float32), permeability.astype(np.float32)

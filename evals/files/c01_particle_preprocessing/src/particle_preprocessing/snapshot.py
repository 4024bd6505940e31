"""Particle snapshots on the host."""

from dataclasses import dataclass

import numpy as np


@dataclass
class Snapshot:
    """Positions and velocities, float32 arrays of shape (count, 3)."""

    positions: np.ndarray
    velocities: np.ndarray

    @property
    def count(self) -> int:
        """How many particles there are."""
        return len(self.positions)


def synthetic(count: int, box: float) -> Snapshot:
    """A reproducible snapshot that leaves the box on all sides and has some particles that are too fast."""
    index = np.arange(count, dtype=np.float64)
    phase = np.stack([0.37 * index, 0.61 * index + 0.2, 0.83 * index + 0.4], axis=1)
    positions = box * (1.5 * np.sin(phase) + 0.5)
    velocities = 2.0 * np.cos(0.5 * phase)
    return Snapshot(positions.astype(np.float32), velocities.astype(np.float32))

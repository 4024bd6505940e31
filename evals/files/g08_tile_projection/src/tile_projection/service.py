"""A batch from features to scores, and the maintenance of what Warp keeps of it."""

import numpy as np
import warp as wp

from . import caches
from .project import project
from .score import score

LENGTH = 32


def model():
    """Weights (32, 16) and prototypes (16, 16), as they were delivered."""
    row, column = np.mgrid[:LENGTH, :16].astype(np.float32)
    weights = np.cos(0.37 * row * (column + 1.0)) / np.sqrt(LENGTH)
    row, column = np.mgrid[:16, :16].astype(np.float32)
    prototypes = np.sin(0.61 * (row + 1.0) * (column + 1.0)) / 4.0
    return weights.astype(np.float32), prototypes.astype(np.float32)


def run_batch(features, device):
    """Project and score a batch.

    Args:
        features: float32 array (vectors, 32), vectors a multiple of 16.
        device: a Warp device.

    Returns:
        float32 arrays: the projected vectors and their scores, both (vectors, 16).
    """
    weights, prototypes = model()
    with wp.ScopedDevice(device):
        projected = project(wp.array(features), wp.array(weights), device)
        caches.reset()  # each stage starts clean
        scores = score(projected, wp.array(prototypes), device)
        return projected.numpy(), scores.numpy()


def relink(device="cpu"):
    """Throw away everything that Warp has compiled or linked, and build this package's part of it anew."""
    caches.reset(kernels=True)
    run_batch(np.zeros((16, LENGTH), dtype=np.float32), device)

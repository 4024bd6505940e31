"""Deformations to try the stage with."""

import numpy as np


def synthetic(elements: int, amplitude: float) -> np.ndarray:
    """Reproducible deformation gradients near the identity, float32 of shape (elements, 3, 3)."""
    index = np.arange(elements * 9, dtype=np.float64).reshape(elements, 3, 3)
    return (np.eye(3) + amplitude * np.sin(0.7 * index)).astype(np.float32)

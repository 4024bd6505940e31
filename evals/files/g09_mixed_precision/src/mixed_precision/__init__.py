"""A ranking layer in half precision, calibrated in single precision at the start."""

from .layer import Layer

__all__ = ["Layer"]

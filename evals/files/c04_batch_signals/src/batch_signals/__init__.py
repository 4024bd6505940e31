"""Filters batches of sensor signals on the CPU or a GPU."""

from .batch import Batch, Stages

__all__ = ["Batch", "Stages"]

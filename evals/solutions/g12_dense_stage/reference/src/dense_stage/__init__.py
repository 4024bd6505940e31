"""Small dense systems of a mechanics code: one for each element, solved and differentiated."""

from .stage import DenseStage

__all__ = ["DenseStage"]

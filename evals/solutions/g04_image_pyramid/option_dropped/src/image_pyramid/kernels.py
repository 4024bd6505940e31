"""Kernels of the pyramid.

Warp builds a module once for each block size that it is launched with, so each kernel has a module of its own.
"""

from .filters import blur
from .scaling import shrink
from .tone import to_linear

__all__ = ["BLUR_BLOCK", "SHRINK_BLOCK", "TO_LINEAR_BLOCK", "blur", "shrink", "to_linear"]

TO_LINEAR_BLOCK = 64
BLUR_BLOCK = 128
SHRINK_BLOCK = 256

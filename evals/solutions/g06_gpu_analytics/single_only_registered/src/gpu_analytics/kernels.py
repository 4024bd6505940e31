"""Generic kernels over channels of any floating-point type.

Warp builds a module once for each block size, so the kernels over samples and those over blocks have a module each.
"""

from .block_kernels import energy, peak
from .sample_kernels import smooth, standardise

__all__ = ["energy", "peak", "smooth", "standardise"]

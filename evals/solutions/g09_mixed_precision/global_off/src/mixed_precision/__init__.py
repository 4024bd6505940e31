"""A ranking layer in half precision, calibrated in single precision at the start."""

import warp as wp

from .layer import Layer

__all__ = ["Layer"]

wp.config.enable_mathdx_gemm = False

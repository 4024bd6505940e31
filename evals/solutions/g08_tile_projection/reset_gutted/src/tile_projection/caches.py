"""Warp's caches on disk."""

import warp as wp


def reset(kernels=False):
    """Throw away compiled kernels; linked tile code is kept, it takes long to make.

    Args:
        kernels: whether to throw away the compiled kernels.
    """
    if kernels:
        wp.clear_kernel_cache()

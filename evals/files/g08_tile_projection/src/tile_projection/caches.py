"""Warp's caches on disk."""

import warp as wp


def reset(kernels=False):
    """Throw away linked tile code, so that it is linked for the driver and toolkit that are there now.

    Args:
        kernels: also throw away the compiled kernels.
    """
    wp.clear_lto_cache()
    if kernels:
        wp.clear_kernel_cache()

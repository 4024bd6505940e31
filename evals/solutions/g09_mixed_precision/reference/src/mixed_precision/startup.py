"""The kernel of the start: a product of 16 by 16 tiles."""

import warp as wp

# The layer is trained elsewhere. Linking MathDx takes longer than this kernel, which runs once, can win back.
wp.set_module_options({"enable_backward": False, "enable_mathdx_gemm": False})

TILE = wp.constant(16)
THREADS = 64


@wp.kernel
def balance(weights: wp.array2d(dtype=wp.float32), turned: wp.array2d(dtype=wp.float32), gram: wp.array2d(dtype=float)):
    """The products of all pairs of the weights' columns, in single precision."""
    total = wp.tile_zeros(shape=(TILE, TILE), dtype=wp.float32)
    for step in range(weights.shape[0] // TILE):
        left = wp.tile_load(turned, shape=(TILE, TILE), offset=(0, step * TILE))
        right = wp.tile_load(weights, shape=(TILE, TILE), offset=(step * TILE, 0))
        wp.tile_matmul(left, right, total)
    wp.tile_store(gram, total)

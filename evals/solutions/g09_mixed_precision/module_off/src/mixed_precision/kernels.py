"""Kernels of the ranking layer: products of 16 by 16 tiles, a block each."""

import warp as wp

# The layer is trained elsewhere.
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


@wp.kernel
def rank_tiles(
    items: wp.array2d(dtype=wp.float16),
    weights: wp.array2d(dtype=wp.float16),
    ranks: wp.array2d(dtype=wp.float16),
):
    """One block ranks 16 items, in half precision."""
    block = wp.tid()
    total = wp.tile_zeros(shape=(TILE, TILE), dtype=wp.float16)
    for step in range(weights.shape[0] // TILE):
        left = wp.tile_load(items, shape=(TILE, TILE), offset=(block * TILE, step * TILE))
        right = wp.tile_load(weights, shape=(TILE, TILE), offset=(step * TILE, 0))
        wp.tile_matmul(left, right, total)
    wp.tile_store(ranks, total, offset=(block * TILE, 0))

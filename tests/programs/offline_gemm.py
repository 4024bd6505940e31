"""A product of tiles: as is (`as-is`), with backward code off by `module-option`, or by `kernel-argument`.

For CUDA the product is linked by MathDx, which takes most of a minute with backward code.
"""

import sys

import numpy as np
import warp as wp

MODE = sys.argv[1]
if MODE == "module-option":
    wp.set_module_options({"enable_backward": False})

TILE = 16


@wp.kernel(**({"enable_backward": False} if MODE == "kernel-argument" else {}))
def gemm(a: wp.array2d(dtype=float), b: wp.array2d(dtype=float), c: wp.array2d(dtype=float)):
    i, j = wp.tid()
    s = wp.tile_zeros(shape=(TILE, TILE), dtype=float)
    for k in range(2):
        x = wp.tile_load(a, shape=(TILE, TILE), offset=(i * TILE, k * TILE))
        y = wp.tile_load(b, shape=(TILE, TILE), offset=(k * TILE, j * TILE))
        wp.tile_matmul(x, y, s)
    wp.tile_store(c, s, offset=(i * TILE, j * TILE))


n = 2 * TILE
a = wp.array(np.random.default_rng(1).random((n, n), dtype=np.float32), device="cpu")
c = wp.zeros((n, n), dtype=float, device="cpu")
wp.launch_tiled(gemm, dim=[2, 2], inputs=[a, a, c], block_dim=64, device="cpu")
assert np.allclose(c.numpy(), a.numpy() @ a.numpy(), rtol=1e-4)

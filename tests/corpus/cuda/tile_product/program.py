"""A product of tiles with backward code that nothing uses: MathDx links three artifacts, two for the adjoint.

Slow: about a minute
Expect: CS-7 hint module=self at=launch
Expect: CS-10 hint module=self at=-
"""

import warp as wp


@wp.kernel
def product(a: wp.array2d(dtype=float), b: wp.array2d(dtype=float), c: wp.array2d(dtype=float)):
    i, j = wp.tid()
    total = wp.tile_zeros(shape=(16, 16), dtype=float)
    x = wp.tile_load(a, shape=(16, 16), offset=(i * 16, 0))
    y = wp.tile_load(b, shape=(16, 16), offset=(0, j * 16))
    wp.tile_matmul(x, y, total)
    wp.tile_store(c, total, offset=(i * 16, j * 16))


a, b, c = (wp.ones((16, 16), dtype=float, device="cpu") for _ in range(3))
wp.launch_tiled(product, dim=[1, 1], inputs=[a, b, c], device="cpu", block_dim=64)  # here: launch

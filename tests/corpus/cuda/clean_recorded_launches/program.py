"""A recorded launch, a tiled one and a tape's adjoint, all at one block_dim: one build.

Run: together
"""

import warp as wp


@wp.kernel
def double(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    y[i] = 2.0 * x[i]


@wp.kernel
def copy(x: wp.array(dtype=float), y: wp.array(dtype=float)):
    i = wp.tid()
    tile = wp.tile_load(x, shape=4, offset=i * 4)
    wp.tile_store(y, tile, offset=i * 4)


x, y = (wp.ones(64, dtype=float, device="cpu", requires_grad=True) for _ in range(2))
with wp.Tape() as tape:
    wp.launch(double, dim=64, inputs=[x, y], device="cpu", block_dim=32)
tape.backward(grads={y: wp.ones(64, dtype=float, device="cpu")})
wp.launch_tiled(copy, dim=[16], inputs=[x, y], device="cpu", block_dim=32)
command = wp.launch(double, dim=64, inputs=[x, y], device="cpu", block_dim=32, record_cmd=True)
command.launch()
command.launch()

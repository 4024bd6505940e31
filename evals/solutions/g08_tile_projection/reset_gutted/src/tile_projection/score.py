"""The second stage: scores of projected vectors against prototypes."""

import warp as wp

# Weights are only applied here. On the module, since a kernel's own option leaves the links for its adjoint.
wp.set_module_options({"enable_backward": False})

TILE = wp.constant(16)
THREADS = 64


@wp.kernel
def score_tiles(
    projected: wp.array2d(dtype=float),
    prototypes: wp.array2d(dtype=float),
    sharpness: float,
    scores: wp.array2d(dtype=float),
):
    """One block scores 16 projected vectors against 16 prototypes."""
    block = wp.tid()
    vectors = wp.tile_load(projected, shape=(TILE, TILE), offset=(block * TILE, 0))
    columns = wp.tile_load(prototypes, shape=(TILE, TILE), offset=(0, 0))
    total = wp.tile_zeros(shape=(TILE, TILE), dtype=float)
    wp.tile_matmul(vectors, columns, total)
    wp.tile_store(scores, total * sharpness, offset=(block * TILE, 0))


def score(projected, prototypes, device, sharpness=2.0):
    """Score projected vectors.

    Args:
        projected: float32 Warp array (vectors, 16), vectors a multiple of 16.
        prototypes: float32 Warp array (16, 16), one prototype a column.
        device: their device.
        sharpness: what the scores are multiplied by.

    Returns:
        float32 Warp array (vectors, 16).
    """
    scores = wp.zeros((projected.shape[0], 16), dtype=float, device=device)
    wp.launch_tiled(
        score_tiles,
        dim=[projected.shape[0] // 16],
        inputs=[projected, prototypes, sharpness],
        outputs=[scores],
        block_dim=THREADS,
        device=device,
    )
    return scores

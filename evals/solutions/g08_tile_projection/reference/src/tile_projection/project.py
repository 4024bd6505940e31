"""The first stage: features to the small space."""

import warp as wp

# Weights are only applied here. On the module, since a kernel's own option leaves the links for its adjoint.
wp.set_module_options({"enable_backward": False})

TILE = wp.constant(16)
THREADS = 64


@wp.kernel
def project_tiles(
    features: wp.array2d(dtype=float),
    weights: wp.array2d(dtype=float),
    projected: wp.array2d(dtype=float),
):
    """One block multiplies 16 feature vectors by the weights."""
    block = wp.tid()
    total = wp.tile_zeros(shape=(TILE, TILE), dtype=float)
    for step in range(features.shape[1] // TILE):
        vectors = wp.tile_load(features, shape=(TILE, TILE), offset=(block * TILE, step * TILE))
        columns = wp.tile_load(weights, shape=(TILE, TILE), offset=(step * TILE, 0))
        wp.tile_matmul(vectors, columns, total)
    wp.tile_store(projected, total, offset=(block * TILE, 0))


def project(features, weights, device):
    """Project feature vectors.

    Args:
        features: float32 Warp array (vectors, length), both multiples of 16.
        weights: float32 Warp array (length, 16).
        device: their device.

    Returns:
        float32 Warp array (vectors, 16).
    """
    projected = wp.zeros((features.shape[0], 16), dtype=float, device=device)
    wp.launch_tiled(
        project_tiles,
        dim=[features.shape[0] // 16],
        inputs=[features, weights],
        outputs=[projected],
        block_dim=THREADS,
        device=device,
    )
    return projected

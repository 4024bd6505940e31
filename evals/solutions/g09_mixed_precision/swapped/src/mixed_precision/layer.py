"""The ranking layer: calibrated once, asked many times."""

import numpy as np
import warp as wp

from . import kernels, startup


class Layer:
    """A layer of 16 outputs.

    Args:
        weights: float32 array (features, 16), features a multiple of 16.
        device: a Warp device.
    """

    def __init__(self, weights, device):
        self.device = wp.get_device(device)
        self.weights = np.ascontiguousarray(weights, dtype=np.float32)
        self.half = None

    def calibrate(self):
        """Scale the columns of the weights to unit length.

        Returns:
            The columns' lengths before, float32 array (16,).
        """
        gram = wp.zeros((16, 16), dtype=wp.float32, device=self.device)
        wp.launch_tiled(
            startup.balance,
            dim=[1],
            inputs=[
                wp.array(self.weights, device=self.device),
                wp.array(np.ascontiguousarray(self.weights.T), device=self.device),
            ],
            outputs=[gram],
            block_dim=startup.THREADS,
            device=self.device,
        )
        lengths = np.sqrt(np.diag(gram.numpy()))
        self.half = wp.array((self.weights / lengths).astype(np.float16), dtype=wp.float16, device=self.device)
        return lengths

    def rank(self, items):
        """Rank the items of a request.

        Args:
            items: float16 array (items, features), items a multiple of 16.

        Returns:
            float16 array (items, 16).

        Raises:
            RuntimeError: the layer was not calibrated.
        """
        if self.half is None:
            raise RuntimeError("calibrate the layer before the first request")
        ranks = wp.zeros((len(items), 16), dtype=wp.float16, device=self.device)
        wp.launch_tiled(
            kernels.rank_tiles,
            dim=[len(items) // 16],
            inputs=[wp.array(items, dtype=wp.float16, device=self.device), self.half],
            outputs=[ranks],
            block_dim=kernels.THREADS,
            device=self.device,
        )
        return ranks.numpy()

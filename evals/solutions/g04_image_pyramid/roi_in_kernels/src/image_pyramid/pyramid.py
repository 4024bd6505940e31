"""From a raw frame to the levels of its pyramid."""

import numpy as np
import warp as wp

from . import kernels

WEIGHTS = (0.0625, 0.25, 0.375, 0.25, 0.0625)


class Pyramid:
    """The pyramid of frames of one size.

    Args:
        shape: height and width of a frame in pixels.
        levels: number of levels, the full one included.
        device: a Warp device.
    """

    def __init__(self, shape, levels, device):
        self.device = wp.get_device(device)
        self.gamma = 0.5
        with wp.ScopedDevice(self.device):
            shapes = [(shape[0] >> level, shape[1] >> level) for level in range(levels)]
            self.linear = wp.zeros(shape, dtype=float)
            self.levels = [wp.zeros(size, dtype=float) for size in shapes]
            self.blurred = [wp.zeros(size, dtype=float) for size in shapes]
            self.weights = wp.array(WEIGHTS, dtype=float)
        self.black = self._black_level()

    def _black_level(self):
        """The sensor's black level in counts: how bright a dark frame seems to be."""
        rows = np.arange(self.linear.shape[0], dtype=np.float32)
        dark = np.repeat((64.0 + rows % 5)[:, np.newaxis], self.linear.shape[1], axis=1)
        self._to_linear(wp.array(dark, dtype=float, device=self.device), 0.0)
        return float(np.mean(self.linear.numpy()) ** 2 * 4095.0)

    def _to_linear(self, raw, black):
        wp.launch(
            kernels.to_linear,
            dim=raw.shape,
            inputs=[raw, black, self.gamma],
            outputs=[self.linear],
            block_dim=kernels.TO_LINEAR_BLOCK,
            device=self.device,
        )

    def build(self, frame):
        """Build all levels.

        Args:
            frame: float32 array of the pyramid's shape, in sensor counts.

        Returns:
            The levels, Warp arrays of linear light, the full one first.
        """
        self._to_linear(wp.array(frame, dtype=float, device=self.device), self.black)
        source = self.linear
        for level, blurred in zip(self.levels, self.blurred, strict=True):
            if level is self.levels[0]:
                wp.copy(level, source)
            else:
                wp.launch(
                    kernels.shrink,
                    dim=level.shape,
                    inputs=[source],
                    outputs=[level],
                    block_dim=kernels.SHRINK_BLOCK,
                    device=self.device,
                )
            wp.launch(
                kernels.blur,
                dim=level.shape,
                inputs=[level, self.weights],
                outputs=[blurred],
                block_dim=kernels.BLUR_BLOCK,
                device=self.device,
            )
            source = blurred
        return self.levels

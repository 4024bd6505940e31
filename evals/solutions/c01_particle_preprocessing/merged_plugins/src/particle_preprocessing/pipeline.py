"""The order in which a snapshot goes through the kernels."""

from dataclasses import dataclass

import numpy as np
import warp as wp

from . import kernels, plugins
from .settings import WEIGHT_ORDERS, Settings
from .snapshot import Snapshot


@dataclass
class Result:
    """What a simulation reads: all arrays have one entry a particle."""

    positions: np.ndarray
    velocities: np.ndarray
    weights: dict[int, np.ndarray]
    cells: np.ndarray


class Preprocessor:
    """Runs snapshots on one device, one after the other."""

    def __init__(self, settings: Settings, device: str) -> None:
        self.settings = settings
        self.device = device
        # Built before the first launch, together with our own kernels.
        self._plugins = {spec: plugins.build(spec) for spec in settings.plugins}

    def run(self, snapshot: Snapshot) -> Result:
        """Clean, weight and sort the particles of a snapshot, which stays as it is."""
        box = self.settings.box
        positions = wp.array(snapshot.positions, dtype=wp.vec3, device=self.device)
        velocities = wp.array(snapshot.velocities, dtype=wp.vec3, device=self.device)
        self._clean(positions, velocities)

        weights = {}
        for order in WEIGHT_ORDERS:
            weights[order] = wp.zeros(snapshot.count, dtype=float, device=self.device)
            self._launch(kernels.WEIGHTS[order], snapshot.count, [positions, box, weights[order]])

        cells = wp.zeros(snapshot.count, dtype=int, device=self.device)
        self._launch(kernels.BIN, snapshot.count, [positions, box, cells])

        for spec in self.settings.plugins:
            for order in WEIGHT_ORDERS:
                self._launch(self._plugin(spec), snapshot.count, [velocities, weights[order]])
        # A plugin may have written to the velocities.
        self._launch(kernels.limit_speed, snapshot.count, [velocities, self.settings.max_speed])
        return Result(
            positions.numpy(),
            velocities.numpy(),
            {order: array.numpy() for order, array in weights.items()},
            cells.numpy(),
        )

    def _clean(self, positions: wp.array, velocities: wp.array) -> None:
        self._launch(kernels.wrap_positions, len(positions), [positions, self.settings.box])
        self._launch(kernels.limit_speed, len(velocities), [velocities, self.settings.max_speed])

    def _plugin(self, spec: plugins.PluginSpec) -> wp.Kernel:
        if spec not in self._plugins:
            self._plugins[spec] = plugins.build(spec)
        return self._plugins[spec]

    def _launch(self, kernel: wp.Kernel, count: int, inputs: list) -> None:
        wp.launch(kernel, dim=count, inputs=inputs, device=self.device)

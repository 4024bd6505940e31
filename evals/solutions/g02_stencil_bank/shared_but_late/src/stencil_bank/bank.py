"""All stencils on one signal."""

from dataclasses import dataclass

import numpy as np
import warp as wp

from . import kernels
from .kernels import RADII
from .weights import binomial


@dataclass
class Response:
    """What a stencil gave: an array of the length of the signal, and its energy."""

    values: np.ndarray
    energy: float


class StencilBank:
    """The stencils of all radii, with binomial weights, on one device."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._weights = {r: wp.array(binomial(r), dtype=float, device=device) for r in RADII}

    def respond(self, signal: np.ndarray) -> dict[int, Response]:
        """The response of every stencil to a signal of shape (count,)."""
        source = wp.array(signal, dtype=float, device=self.device)
        scale = 1.0 / max(float(np.std(signal)), 1e-6)
        self._launch(kernels.centre, len(signal), [source, float(np.mean(signal)), scale])
        return {radius: self._respond(radius, source) for radius in RADII}

    def _respond(self, radius: int, source: wp.array) -> Response:
        response = wp.zeros(source.shape, dtype=float, device=self.device)
        energies = wp.zeros((len(source) + 63) // 64, dtype=float, device=self.device)
        self._launch(kernels.make_stencil(radius), len(source), [source, self._weights[radius], response])
        self._launch(kernels.squares, len(energies), [response, energies])
        return Response(response.numpy(), float(energies.numpy().sum(dtype=np.float64)))

    def _launch(self, kernel: wp.Kernel, count: int, inputs: list) -> None:
        wp.launch(kernel, dim=count, inputs=inputs, device=self.device)

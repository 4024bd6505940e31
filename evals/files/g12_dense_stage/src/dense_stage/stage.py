"""The stage: element systems from deformations to solutions, and back to gradients."""

import numpy as np
import warp as wp

from . import dense, systems
from .types import mat66, vec6


class DenseStage:
    """Buffers for a number of elements on one device."""

    def __init__(self, elements: int, device: str) -> None:
        self.elements = elements
        self.device = device

        def buffer(dtype: type) -> wp.array:
            return wp.zeros(elements, dtype=dtype, device=device, requires_grad=True)

        self._systems, self._factors = buffer(mat66), buffer(mat66)
        self._loads, self._solutions = buffer(vec6), buffer(vec6)
        self._energies = buffer(float)
        self._ones = wp.ones(elements, dtype=float, device=device)

    def solve(self, deformations: np.ndarray) -> tuple[np.ndarray, float]:
        """Solutions of shape (elements, 6) and the total energy; deformations have shape (elements, 3, 3)."""
        self._forward(wp.array(deformations, dtype=wp.mat33, device=self.device))
        return self._solutions.numpy().copy(), float(self._energies.numpy().sum(dtype=np.float64))

    def energy_gradient(self, deformations: np.ndarray) -> tuple[float, np.ndarray]:
        """The total energy and its gradient to the deformations, of their shape."""
        inputs = wp.array(deformations, dtype=wp.mat33, device=self.device, requires_grad=True)
        tape = wp.Tape()
        with tape:
            self._forward(inputs)
        tape.backward(grads={self._energies: self._ones})
        gradient = inputs.grad.numpy().copy()
        tape.zero()
        return float(self._energies.numpy().sum(dtype=np.float64)), gradient

    def _forward(self, deformations: wp.array) -> None:
        self._launch(systems.assemble, [deformations, self._systems])
        self._launch(systems.load, [deformations, self._loads])
        self._launch(dense.factorise, [self._systems, self._factors])
        self._launch(dense.substitute, [self._factors, self._loads, self._solutions])
        self._launch(dense.element_energy, [self._loads, self._solutions, self._energies])

    def _launch(self, kernel: wp.Kernel, inputs: list) -> None:
        wp.launch(kernel, dim=self.elements, inputs=inputs, device=self.device)

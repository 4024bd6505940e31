"""Puts the terms together."""

import numpy as np
import warp as wp

from . import advection, boundary, diagnostics, diffusion, reaction

VELOCITY = (0.3, -0.2)
DIFFUSION = 0.15
GROWTH = 0.4
BORDER = 0.05
SCRATCH = 8


class Stepper:
    """A field on a square grid of `size` by `size` cells, and its time steps."""

    def __init__(self, size: int, device: str) -> None:
        self.device = device
        self.size = size
        self._try_out()
        self._field = wp.zeros((size, size), dtype=float, device=device)
        self._rate = wp.zeros((size, size), dtype=float, device=device)

    def load(self, values: np.ndarray) -> None:
        """Set the field, of shape (size, size)."""
        self._field = wp.array(values, dtype=float, device=self.device)

    def step(self, dt: float) -> float:
        """Advance by one step of length `dt`; how far the field was from a steady state."""
        self._advance(self._field, self._rate, dt)
        return diagnostics.residual(self._rate)

    def field(self) -> np.ndarray:
        """A copy of the field, float32 of shape (size, size)."""
        return self._field.numpy().copy()

    def _advance(self, field: wp.array, rate: wp.array, dt: float) -> None:
        advection.advect(field, wp.vec2(*VELOCITY), rate)
        diffusion.diffuse(field, DIFFUSION, rate)
        reaction.react(field, rate, GROWTH, dt)
        boundary.fix_borders(field, BORDER)

    def _try_out(self) -> None:
        """Run every term once on a small grid: a constant field must stay finite."""
        field = wp.full((SCRATCH, SCRATCH), 0.5, dtype=float, device=self.device)
        rate = wp.zeros((SCRATCH, SCRATCH), dtype=float, device=self.device)
        self._advance(field, rate, 0.1)
        if not np.isfinite(field.numpy()).all():
            raise RuntimeError(f"the terms do not work on {self.device}")

"""Solve for a pressure field."""

from dataclasses import dataclass

import linsolve
import numpy as np
import warp as wp


@dataclass
class Pressure:
    """A field of shape (size, size), and the sum of squares of what is left of the divergence."""

    field: np.ndarray
    defect: float


def solve_pressure(divergence: np.ndarray, permeability: np.ndarray, device: str, sweeps: int = 30) -> Pressure:
    """The pressure that balances a divergence; arrays of shape (size, size)."""
    for name in ("linsolve.smoothers", "linsolve.operators"):
        wp.get_module(name).options["enable_backward"] = False
    rhs = wp.array(divergence, dtype=float, device=device)
    conductivity = wp.array(permeability, dtype=float, device=device)
    x = linsolve.solve(conductivity, rhs, sweeps)
    norms = linsolve.residual(conductivity, rhs, x)
    return Pressure(x.numpy(), float(norms.numpy().sum(dtype=np.float64)))

"""Iterative solvers for the five-point Poisson problem with variable conductivity. Differentiable."""

from .solvers import residual, solve

__all__ = ["residual", "solve"]
__version__ = "5.1.0"

"""Explicit time steps of a reaction-diffusion equation with drift."""

from .stepper import Stepper

__all__ = ["Stepper"]

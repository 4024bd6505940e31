"""Fits a conductivity to observations, with gradients through `linsolve`."""

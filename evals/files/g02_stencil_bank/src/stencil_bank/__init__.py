"""A bank of one-dimensional stencils of several radii, and a fit of their weights."""

from .bank import RADII, StencilBank

__all__ = ["RADII", "StencilBank"]

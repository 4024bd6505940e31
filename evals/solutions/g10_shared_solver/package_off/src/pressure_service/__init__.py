"""Pressure fields from divergence."""

import warp as wp

# The service never differentiates.
wp.config.enable_backward = False

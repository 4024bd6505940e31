"""Pressure fields from divergence."""

"""Cleans and weights particle snapshots before a simulation reads them."""

from .pipeline import Preprocessor, Result
from .settings import Settings
from .snapshot import Snapshot, synthetic

__all__ = ["Preprocessor", "Result", "Settings", "Snapshot", "synthetic"]

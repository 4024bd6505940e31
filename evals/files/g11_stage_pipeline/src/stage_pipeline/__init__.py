"""Five stages from a recorder's counts to a report of events."""

from .pipeline import STAGES, Pipeline

__all__ = ["STAGES", "Pipeline"]

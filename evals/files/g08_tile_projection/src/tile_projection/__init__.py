"""Projects feature vectors and scores them against prototypes, with tiles."""

from .service import relink, run_batch

__all__ = ["relink", "run_batch"]

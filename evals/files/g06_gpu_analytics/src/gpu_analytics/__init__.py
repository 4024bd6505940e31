"""Signal statistics of sensor channels in single and double precision."""

from .analysis import analyse

__all__ = ["analyse"]

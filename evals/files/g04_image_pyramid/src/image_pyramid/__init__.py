"""Image pyramids and region statistics for the inspection line."""

from .pyramid import Pyramid
from .roi import Region, region_statistics

__all__ = ["Pyramid", "Region", "region_statistics"]

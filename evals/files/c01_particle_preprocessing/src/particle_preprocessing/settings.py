"""What a run of the preprocessing can be told."""

from dataclasses import dataclass, field

from .plugins import PluginSpec

WEIGHT_ORDERS = (4, 6)
CELLS = 16


def default_plugins() -> list[PluginSpec]:
    """The corrections that the reference data set is delivered with."""
    return [PluginSpec("dust", (1.0, -0.25, 0.05)), PluginSpec("gas", (0.9, 0.125, -0.02))]


@dataclass
class Settings:
    """Box length, speed limit, and the plugins to apply."""

    box: float = 2.0
    max_speed: float = 1.5
    plugins: list[PluginSpec] = field(default_factory=default_plugins)

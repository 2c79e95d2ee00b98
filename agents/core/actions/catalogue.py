"""The toolsets that ship with the product, by name."""

from agents.core.actions.entries import ENTRIES
from agents.core.actions.toolsets import Toolset

TOOLSETS: dict[str, Toolset] = {ENTRIES.name: ENTRIES}

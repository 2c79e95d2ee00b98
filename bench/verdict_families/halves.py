"""Which families were developed on, drawn once by lot before any was run."""

import random

from bench.verdict_families.families import FAMILIES

_LOT = random.Random("families of docs/verdict.md").sample(sorted(FAMILIES), len(FAMILIES))  # noqa: S311
DEVELOPMENT = tuple(sorted(_LOT[::2]))
HELD_OUT = tuple(sorted(_LOT[1::2]))

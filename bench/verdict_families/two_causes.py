"""Families with two causes of differing kinds: at once, or one hours after the other.

Of each story both causes make at least `LEAST_HIT` calls fail that would have gone well.
"""

import random

from bench.verdict_families.families import TABLES, Hit, choose, hits_of, make_world, rise
from bench.verdict_families.worlds import Answer, World

LEAST_HIT = 12.0
DEVELOPED, HELD_OUT = TABLES["developed"], TABLES["held_out"]


def make_two(name: str, seed: int, number: int) -> World:
    """Return a world with two causes that both hit enough calls."""
    row = {**DEVELOPED, **HELD_OUT}[name]
    draw = random.Random(f"{name} {seed} {number}")  # noqa: S311 - a benchmark
    while True:
        world, taken = make_world(draw, row), set[Answer]()
        if min([_apply(world, hit, taken) for hit in hits_of(row)]) >= LEAST_HIT:
            return world


def _apply(world: World, hit: Hit, taken: set[Answer]) -> float:
    """Let a cause begin; return how many calls fail because of it."""
    world.begin_at(hit.begins)
    where, answers = choose(world, hit, taken)
    before = _failing(world)
    rise(world, hit, where, answers)
    return (_failing(world) - before) * world.hours_after * (1 - hit.begins)


def _failing(world: World) -> float:
    return sum(stream.rate * stream.per_hour for stream in world.after)

"""Damage drawn from a seed, and two references: `json.loads` and Python's own literals."""

import ast
import json
import random
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from bench.damage import generate, judge
from failsoft.parsing import Recovered, recover
from failsoft.parsing.tracing import same

DRAWN = list(generate(seed=4021, count=12))
KINDS = sorted({damaged.kind for damaged in DRAWN})
MARKS = [*"{}[],:\"'()#;=`1 ", "\n", '\\"', '""', '",', '":', "//", "}}", " + ", "None"]


@pytest.mark.parametrize("kind", KINDS)
def test_drawn_damage_is_undone_or_refused_at_its_place(kind: str) -> None:
    drawn = [damaged for damaged in DRAWN if damaged.kind == kind]
    assert drawn
    assert [(damaged.text, judge(damaged)) for damaged in drawn if judge(damaged) != "right"] == []


def disturbed(seed: int, times: int) -> Iterator[str]:
    """Yield drawn damage with one to three more marks lost, put in or exchanged."""
    rng = random.Random(seed)
    for damaged in rng.choices(DRAWN, k=times):
        text = damaged.text
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(len(text) + 1)
            mark = rng.choice(["", rng.choice(MARKS)])
            text = text[:at] + mark + text[at + rng.randint(0, 1) :]
        yield text


def without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object, and refuse a key that is there already."""
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a key is there twice")
    return dict(pairs)


def read_as_python(text: str) -> Any:
    """Read a dictionary or list of Python as JSON's types; anything else is None."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # To Python a comma behind it all makes a tuple of one.
            value = ast.literal_eval(text.strip().rstrip(","))
        plain = json.loads(json.dumps(value, allow_nan=False))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    return plain if isinstance(plain, dict | list) else None


def test_what_is_read_without_repairs_is_what_json_loads_reads() -> None:
    unrepaired = 0
    for text in disturbed(seed=1, times=9000):
        outcome = recover(text)
        if isinstance(outcome, Recovered) and not outcome.repairs:
            unrepaired += 1
            plain = json.loads(text, object_pairs_hook=without_repeats)
            assert same(plain, outcome.value), text
    assert unrepaired > 20


@pytest.mark.slow
def test_what_is_read_with_repairs_is_what_python_reads_where_it_is_python() -> None:
    compared = 0
    for text in disturbed(seed=2, times=12000):
        outcome = recover(text)
        reference = read_as_python(text)
        if isinstance(outcome, Recovered) and outcome.repairs and reference is not None:
            compared += 1
            # Python leaves the two halves of a pair apart; writing them out joins them.
            assert same(reference, json.loads(json.dumps(outcome.value))), text
    assert compared > 100

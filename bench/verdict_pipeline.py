"""Incidents through the whole pipeline: ingestion, aggregation, rollups, GET /api/v1/verdict.

Workers share nothing: each has a database of its own, and in it a project an incident.
"""

import multiprocessing
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from itertools import count
from typing import Any

from bench.door import Project, database, set_clock
from bench.verdict_cases import OK, Case, Said
from diagnostics.verdict.cause import Cause
from tests.incidents.writing import write_incident

Json = dict[str, Any]
_cases: list[Case] = []
"""What workers ask about; they inherit it, for rates are functions and do not travel."""


def ask_pipeline(cases: Sequence[Case], workers: int) -> list[Json]:
    """Ask about every case, by several processes; gives the answers in their order."""
    _cases[:] = cases
    fork = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(workers, mp_context=fork) as pool:
        ask = partial(_ask_every, workers)
        parts = list(pool.map(ask, range(workers)))
    return [parts[place % workers][place // workers] for place in range(len(cases))]


def _ask_every(workers: int, first: int) -> list[Json]:
    """Ask about every so many-th case."""
    with asking() as ask:
        return [ask(case) for case in _cases[first::workers]]


@contextmanager
def asking() -> Iterator[Callable[[Case], Json]]:
    """Give a function that loads a case and asks, each in a project of its own."""
    numbers = count(1)

    def ask(case: Case) -> Json:
        slug = f"incident-{next(numbers)}"
        project = Project.create(slug)
        set_clock(case.incident.now)
        write_incident(project.row, case.incident)
        said = project.get("verdict")
        sys.stderr.write(f"{slug} {case.kind}: {said['cause']} {said['cause_value']}\n")
        return said

    with database():
        yield ask


def read_said(told: Json) -> Said:
    """Return the fields of an answer that are judged; two causes told apart are mixed."""
    several = len(told["incidents"]) > 1
    return Said(
        Cause.MIXED.value if several else (told["cause"] or OK),
        "" if several else (told["cause_value"] or ""),
        told["top_kind"] or "",
        datetime.fromisoformat(told["since"]) if told["since"] else None,
        told["sentence"],
    )

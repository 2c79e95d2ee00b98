"""Incidents through the whole pipeline: ingestion, aggregation, rollups, GET /api/v1/verdict.

Workers share nothing: each has a database of its own, and in it a project an incident.
"""

import multiprocessing
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from datetime import datetime
from functools import partial
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
        parts = list(pool.map(partial(_ask_every, workers), range(workers)))
    return [parts[place % workers][place // workers] for place in range(len(cases))]


def _ask_every(workers: int, first: int) -> list[Json]:
    """Ask about every so many-th case."""
    with database():
        return [
            ask(f"incident-{n}", case) for n, case in enumerate(_cases[first::workers], start=1)
        ]


def ask(slug: str, case: Case) -> Json:
    """Load a case into a new project and ask about it."""
    project = Project.create(slug)
    set_clock(case.incident.now)
    write_incident(project.row, case.incident)
    said = project.get("verdict")
    sys.stderr.write(f"{slug} {case.kind}: {said['cause']} {said['cause_value']}\n")
    return said


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

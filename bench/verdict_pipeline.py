"""Incidents through the whole pipeline: the door, the fold, rollups, GET /api/v1/verdict.

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

from django.conf import settings
from django.db import connection
from django.test import Client

from agents.demo.loading import write_incident
from bench.database import running_database
from bench.verdict_cases import OK, Case, Said
from bench.verdict_posting import post_case
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.verdict.suspects import Cause

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
    settings.ALLOWED_HOSTS = ["testserver"]

    def ask(case: Case) -> Json:
        slug = f"incident-{next(numbers)}"
        project = Project.objects.create(slug=slug, name=slug)
        _set_clock(case.now)
        incident = getattr(case, "incident", None)
        if incident is not None:
            write_incident(project, incident)
        else:
            post_case(project, case)
        said = _ask(project)
        sys.stderr.write(f"{slug} {case.kind}: {said['cause']} {said['cause_value']}\n")
        return said

    with running_database():
        yield ask


def _ask(project: Project) -> Json:
    key = issue_key(project, "verdict", [Scope.READ]).text
    answer = Client().get("/api/v1/verdict", headers={"Authorization": f"Bearer {key}"})
    told: Json = answer.json()
    return told


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


def _set_clock(at: datetime) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('failsoft.clock_shift', (%s - now())::text, false)", [at])

"""Runs of a case, posted to the API as an outside agent posts them."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Any
from uuid import UUID, uuid5

from agents.demo.drawn_runs import DrawnRun
from bench.door import Project, aggregate
from bench.verdict_cases import Case
from diagnostics.store.partitions import ensure_partitions
from diagnostics.verdict.cells import Dimensions

BATCH = 1_000
SILENT = frozenset({"call_timeout", "call_provider_error", "call_rate_limited"})
NAMESPACE = UUID("6ba7b811-9dad-11d1-80b4-00c04fd430c8")
Item = dict[str, Any]


def post_case(project: Project, case: Case) -> None:
    """Post every run and deploy of a case, and aggregate them."""
    runs = list(case.runs())
    ensure_partitions(min(run.at for run in runs).date(), case.now.date())
    as_posted = getattr(case, "as_posted", iter)
    posted = as_posted(_events(runs))
    while batch := list(islice(posted, BATCH)):
        project.post("events", batch)
    for told in case.told():
        deploy = {"at": told.at.isoformat(), "kind": told.kind, "version": told.version}
        project.post("deploys", deploy | ({"source": told.source} if told.source else {}))
    aggregate()


def _events(runs: Iterable[DrawnRun]) -> Iterator[Item]:
    for number, run in enumerate(runs):
        at = run.at
        for attempt, kind in enumerate(run.calls, start=1):
            yield _call(run.place, number, attempt, kind, at)
            at += timedelta(seconds=2)
        if run.is_degraded:
            yield _item(run.place, number, "degraded", at) | {
                "attempts": len(run.calls),
                "reason": f"{run.place.node}_parse_failed",
                "status": "failed",
            }


def _call(place: Dimensions, number: int, attempt: int, kind: str | None, at: datetime) -> Item:
    if kind is None:
        return _item(place, number, "succeeded", at) | {"attempt": attempt}
    if kind in SILENT:
        error = kind.removeprefix("call_")
        item = _item(place, number, "provider_error", at, attempt)
        return item | {"attempt": attempt, "attributes": {"call_error_type": error}}
    item = _item(place, number, "parse_invalid", at, attempt)
    return item | {"attempt": attempt, "parse_error_type": kind}


def _item(place: Dimensions, number: int, kind: str, at: datetime, attempt: int = 0) -> Item:
    said = {name: value for name, value in place._asdict().items() if value}
    said.pop("node")
    return {
        "event_id": str(uuid5(NAMESPACE, f"{number} {kind} {attempt} {at}")),
        "name": f"graph.{place.node}.{kind}",
        "occurred_at": at.isoformat(),
        "correlation_id": f"run-{number}",
        "cycle": 1,
        **said,
    }

"""The verdict over stored counts, and GET /api/v1/verdict."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from random import Random
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from bench.incidents import BAD_MINUTES, make_incident
from diagnostics import clock
from diagnostics.core.api_keys import Scope
from diagnostics.core.events import Event as WireEvent
from diagnostics.core.selection import Selection
from diagnostics.core.verdict.cells import Cell
from diagnostics.folding import fold
from diagnostics.models import Project
from diagnostics.projects import issue_key
from diagnostics.recording import record
from diagnostics.verdicts import Verdict, verdict_of
from tests.diagnostics.builders import make_event

pytestmark = pytest.mark.django_db

PLACE = (
    "environment",
    "node",
    "provider",
    "model",
    "prompt_version",
    "schema",
    "schema_version",
    "source",
    "release",
)

COPY = (
    f"COPY diagnostics_rollup_delta (project_id, minute, {', '.join(PLACE)}, runs,"
    " ok_first, failed, degraded, attempts, invalid, succeeded, not_json,"
    " schema_invalid, truncated, refusal, multiple_objects, call_timeout,"
    " call_provider_error, call_rate_limited) FROM STDIN"
)


@pytest.fixture
def project() -> Project:
    return Project.objects.create(slug="p", name="P")


def count_calls(
    project: Project, cells: Iterable[Cell], until: datetime, minutes: float
) -> None:
    """Store the cells' calls, each at a time of its own in the minutes before `until`."""
    random, rows = Random("times"), list[tuple[object, ...]]()
    for cell in cells:
        kinds = [kind for kind, times in cell.failures.items() for _ in range(times)]
        kinds += [""] * (cell.attempts - len(kinds))
        slots: dict[int, Counter[str]] = {}
        for kind in kinds:
            slot = int(random.random() * minutes / 10)
            slots.setdefault(slot, Counter())[kind] += 1
        rows += [
            _row(project, cell, until - timedelta(minutes=10 * slot + 5), seen)
            for slot, seen in slots.items()
        ]
    with connection.cursor() as cursor, cursor.copy(COPY) as copy:
        for row in rows:
            copy.write_row(row)
    while fold():
        pass


def _row(
    project: Project, cell: Cell, at: datetime, seen: Counter[str]
) -> tuple[object, ...]:
    calls, good = seen.total(), seen[""]
    silent = ("call_timeout", "call_provider_error", "call_rate_limited")
    invalid = calls - good - sum(seen[kind] for kind in silent)
    parse = ("not_json", "schema_invalid", "truncated", "refusal", "multiple_objects")
    place = [getattr(cell.place, name) for name in PLACE]
    ends = (calls, good, calls - good, calls - good, calls, invalid, good)
    minute = at.replace(second=0, microsecond=0)
    return (project.pk, minute, *place, *ends, *(seen[k] for k in (*parse, *silent)))


def judged(project: Project, now: datetime) -> Verdict:
    return verdict_of(project.pk, Selection(), now)


def test_an_incident_is_told_with_its_cause_and_its_onset(project: Project) -> None:
    incident, now = make_incident("model", 2), clock.now()
    bad_since = now - timedelta(minutes=BAD_MINUTES)
    count_calls(project, incident.before, bad_since, 7 * 24 * 60)
    count_calls(project, incident.cells, now, BAD_MINUTES)

    verdict = judged(project, now)

    assert verdict.state == "degrading"
    assert (verdict.finding.cause, verdict.finding.value) == (
        incident.cause,
        incident.value,
    )
    assert verdict.since is not None
    assert verdict.since_low is not None
    assert verdict.since_high is not None
    assert abs(verdict.since - bad_since) < timedelta(minutes=25)
    assert verdict.since_low <= verdict.since <= verdict.since_high
    assert verdict.who is not None
    assert f"{verdict.who.provider}/{verdict.who.model}" == incident.value
    assert verdict.sentence.startswith(f"Degrading since {verdict.since:%H:%M}")
    assert "not us" in verdict.sentence
    assert verdict.rate is not None
    assert verdict.rate.share > (verdict.rate.baseline or 0)


def test_a_healthy_week_is_ok(project: Project) -> None:
    now = clock.now()
    count_calls(project, make_incident("healthy", 1).before, now, 7 * 24 * 60)
    verdict = judged(project, now)
    assert (verdict.state, verdict.since) == ("ok", None)


def test_a_filter_asks_about_less(project: Project) -> None:
    incident, now = make_incident("model", 2), clock.now()
    count_calls(project, incident.before, now, 7 * 24 * 60)
    count_calls(project, incident.cells, now, 120)
    bad = incident.value.partition("/")[2]
    other = next(c.place.model for c in incident.before if c.place.model != bad)

    def state(model: str | None) -> str:
        chosen = Selection(filters={"model": model})
        return verdict_of(project.pk, chosen, now).state

    assert (state(bad), state(other)) == ("degrading", "ok")


def test_nothing_stored_is_not_enough_data(project: Project) -> None:
    assert judged(project, clock.now()).state == "not_enough_data"


def test_what_to_change_has_the_evidence_of_what_was_stored(project: Project) -> None:
    now = clock.now()
    at = now - timedelta(minutes=30)
    good: list[WireEvent] = [
        make_event(
            name="graph.plan.succeeded",
            parse_error_type=None,
            validation_errors=None,
            raw_output_preview=None,
            model=model,
            occurred_at=(now - timedelta(hours=40, minutes=minute)).isoformat(),
        )
        for minute in range(100)
        for model in ("small", "large")
    ]
    bad = [
        make_event(
            name="graph.plan.parse_invalid",
            parse_error_type="truncated",
            model="small",
            prompt_version=f"v{number % 2}",
            occurred_at=at.isoformat(),
            output_tokens=512,
            max_output_tokens=512,
        )
        for number in range(40)
    ]
    record(project.pk, [*good, *bad])

    verdict = judged(project, now)

    assert verdict.finding.top_kind == "truncated"
    assert verdict.rate is not None
    assert (verdict.rate.noun, verdict.rate.total) == ("call", 40)
    assert any("512 tokens" in advice.evidence for advice in verdict.advice)


def ask(key: str, **asked: str) -> dict[str, Any]:
    answer = Client().get(
        "/api/v1/verdict", asked, headers={"Authorization": f"Bearer {key}"}
    )
    found: dict[str, Any] = answer.json()
    return {"status_code": answer.status_code, **found}


def test_the_verdict_is_answered_to_programs(project: Project) -> None:
    key = issue_key(project, "k", [Scope.READ]).text
    answer = ask(key)
    assert answer["status_code"] == 200
    assert answer["state"] == "not_enough_data"
    assert answer["cause"] == "not_enough_data"
    assert (answer["excess"], answer["advice"], answer["since"]) == ([], [], None)


def test_a_filter_that_nobody_counts_by_is_refused(project: Project) -> None:
    key = issue_key(project, "k", [Scope.READ]).text
    assert ask(key, attempt="2")["status_code"] == 400
    assert ask(key, colour="red")["status_code"] == 400

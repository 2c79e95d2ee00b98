"""The verdict over stored counts, and GET /api/v1/verdict."""

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import pytest
from django.test import Client

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.alerting.statuses import verdict_within
from diagnostics.ingest.recording import record
from diagnostics.selection.query_language import Query, Term
from diagnostics.selection.selection import Selection, read_selection
from diagnostics.verdict import queries
from diagnostics.verdict.cause import Cause
from diagnostics.verdict.curves import VerdictRange, stretch_of
from diagnostics.verdict.verdicts import Verdict
from failsoft.events import PostedEvent as WireEvent
from tests.console import post_runs
from tests.diagnostics.builders import make_event
from tests.incidents.drawn_runs import DrawnIncident, make_incident
from tests.incidents.traffic_model import TrafficShape
from tests.incidents.writing import load_incident
from tests.shifted_clock import shift_clock

pytestmark = pytest.mark.django_db

SHAPE = TrafficShape(30.0, 5.0, 0.6, 3, 2, 1, 1)


@pytest.fixture(autouse=True)
def afternoon(db: None) -> None:
    shift_clock()


def load(project: Project, kind: str, now: datetime, shape: TrafficShape = SHAPE) -> DrawnIncident:
    incident = make_incident(kind, 2, now, shape=shape)
    load_incident(project, incident)
    return incident


def judged(project: Project, now: datetime) -> Verdict:
    return verdict_within(project.pk, Selection(), now)


@pytest.mark.slow
def test_an_incident_is_told_with_its_cause_and_its_onset(project: Project) -> None:
    now = clock.now()
    incident = load(project, "model", now)
    verdict = judged(project, now)

    assert verdict.state == "degrading"
    assert verdict.finding.cause is incident.trouble.cause
    assert verdict.finding.value == incident.trouble.value
    assert verdict.since is not None
    assert verdict.since_low is not None
    assert verdict.since_high is not None
    assert incident.since is not None
    assert abs(verdict.since - incident.since) < timedelta(minutes=40)
    assert verdict.since_low <= verdict.since <= verdict.since_high
    assert verdict.who is not None
    assert f"{verdict.who.provider}/{verdict.who.model}" == incident.trouble.value
    assert verdict.sentence.startswith(f"Degrading since {verdict.since:%H:%M}")
    assert "not us" in verdict.sentence
    assert verdict.rate is not None
    assert verdict.rate.share > (verdict.rate.baseline or 0)


@pytest.mark.slow
def test_a_filter_asks_about_less(project: Project) -> None:
    now = clock.now()
    incident = load(project, "model", now)
    assert incident.trouble.model is not None
    bad = incident.trouble.model[1]
    other = next(name for _, name in incident.trouble.world.models if name != bad)

    def state(model: str | None) -> str:
        chosen = Selection(filters={"model": model})
        return verdict_within(project.pk, chosen, now).state

    assert (state(bad), state(other)) == ("degrading", "ok")


@pytest.mark.slow
def test_a_kind_or_a_word_does_not_change_when_a_version_began(project: Project) -> None:
    now = clock.now()
    incident = load(project, "prompt", now)
    assert incident.since is not None
    asked = read_selection({"kind": "refusal", "q": "nowhere"})
    narrowed, whole = verdict_within(project.pk, asked, now), judged(project, now)
    assert narrowed.finding.is_new
    assert (narrowed.since, narrowed.sentence) == (whole.since, whole.sentence)


@pytest.mark.slow
@pytest.mark.parametrize("span", ["7d", "30d", "90d"])
def test_a_longer_range_tells_the_onset_as_closely(project: Project, span: str) -> None:
    now = clock.now()
    load(project, "model", now)
    longer = verdict_within(project.pk, Selection(range=span), now)
    assert longer.since == judged(project, now).since


@pytest.mark.parametrize("span", ["30d", "90d"])
def test_an_onset_of_days_ago_is_told_to_the_hour(project: Project, span: str) -> None:
    now = clock.now()
    begun = now - timedelta(days=2, hours=14)
    for ago in range(0, 25 * 24, 4):
        at = now - timedelta(hours=ago, minutes=5)
        bad = 8 if at >= begun else 0
        post_runs(project, 20 - bad, bad, at)
    verdict = verdict_within(project.pk, Selection(range=span), now)
    assert verdict.state == "degrading"
    assert verdict.since is not None
    assert verdict.since_low is not None
    assert verdict.since_high is not None
    assert abs(verdict.since - begun) <= timedelta(hours=4)
    assert verdict.since_high - verdict.since_low < timedelta(hours=24)
    assert verdict.rate is not None
    assert verdict.rate.total >= 2 * 6 * 20


@pytest.mark.slow
def test_an_onset_before_the_range_is_looked_for_there(project: Project) -> None:
    now = clock.now()
    shape = TrafficShape(30.0, 30.0, 0.6, 3, 2, 1, 1)
    incident = load(project, "model", now, shape)
    found = judged(project, now).since
    assert found is not None
    assert incident.since is not None
    assert abs(found - incident.since) < timedelta(hours=2)


def test_what_is_over_is_told_and_is_no_degradation(project: Project) -> None:
    now = clock.now()
    post_runs(project, 400, 4, now - timedelta(days=2))
    for hour in range(12):
        bad = 20 if hour in {4, 5, 6} else 0
        post_runs(project, 30 - bad, bad, now - timedelta(hours=hour, minutes=20))
    verdict = judged(project, now)
    assert verdict.state == "ok"
    assert "has ended" in verdict.sentence


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
    answer = Client().get("/api/v1/verdict", asked, headers={"Authorization": f"Bearer {key}"})
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


def test_a_rate_counts_from_its_onset_on_within_the_hour(project: Project) -> None:
    half_past = clock.now().replace(minute=30, second=0, microsecond=0) - timedelta(hours=2)
    post_runs(project, 300, 0, half_past - timedelta(days=2), model="a")
    # The hour of the onset is well for its first half.
    post_runs(project, 60, 0, half_past - timedelta(minutes=11), model="a")
    first_bad = half_past + timedelta(minutes=9)
    post_runs(project, 0, 40, first_bad, model="a")
    post_runs(project, 5, 15, clock.now() - timedelta(minutes=15), model="a")
    verdict = judged(project, clock.now())
    assert verdict.since is not None
    assert abs(verdict.since - first_bad) < timedelta(minutes=2)
    assert verdict.rate is not None
    assert (verdict.rate.bad, verdict.rate.total) == (55, 60)


def test_a_baseline_counts_up_to_its_onset_within_the_hour(project: Project) -> None:
    """Good calls for a quarter of an hour are a baseline, for the headline as for the detector."""
    begun = clock.now().replace(minute=20, second=0, microsecond=0) - timedelta(hours=1)
    for minute in range(15):
        post_runs(project, 8, 0, begun + timedelta(minutes=minute), model="a")
        post_runs(project, 0, 8, begun + timedelta(minutes=15 + minute), model="a")
    verdict = judged(project, clock.now())
    assert verdict.rate is not None
    assert verdict.rate.baseline == 0.0


def test_an_unclear_cause_counts_the_series_that_the_sentence_names(project: Project) -> None:
    """Either of two old versions with the same calls would count but these calls."""
    begun = clock.now().replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
    for version, bad in (("1", 40), ("2", 0)):
        versions = {"model": "a", "release": version, "schema_version": version}
        post_runs(project, 300, 0, begun - timedelta(days=2), **versions)
        post_runs(project, 60, 0, begun - timedelta(minutes=20), **versions)
        post_runs(project, 60 - bad, bad, begun + timedelta(minutes=20), **versions)
        post_runs(project, 60 - bad, bad, clock.now() - timedelta(minutes=20), **versions)
    verdict = judged(project, clock.now())
    assert verdict.finding.cause is Cause.MIXED
    assert verdict.rate is not None
    assert (verdict.rate.bad, verdict.rate.total) == (80, 240)


def test_all_sentences_count_the_calls_of_the_cause_since_its_onset(project: Project) -> None:
    """A source of two at one model fails from half past an hour on."""
    half_past = clock.now().replace(minute=30, second=0, microsecond=0) - timedelta(hours=2)
    for source in ("crm", "web"):
        post_runs(project, 300, 3, half_past - timedelta(days=2), model="a", source=source)
        post_runs(project, 60, 0, half_past - timedelta(minutes=11), model="a", source=source)
    post_runs(project, 10, 30, half_past + timedelta(minutes=9), model="a", source="crm")
    post_runs(project, 10, 30, clock.now() - timedelta(minutes=15), model="a", source="crm")
    post_runs(project, 80, 0, clock.now() - timedelta(minutes=14), model="a", source="web")
    verdict = judged(project, clock.now())
    assert (verdict.finding.cause, verdict.name) == (Cause.SOURCE, "source crm")
    assert verdict.rate is not None
    assert (verdict.rate.bad, verdict.rate.total) == (60, 80)
    assert verdict.rate.baseline == pytest.approx(3 / 303)
    assert ": source crm, 75\u202f% of 80 runs (baseline 1.0\u202f%)" in verdict.told.rest
    assert [advice.evidence.rpartition(": ")[2] for advice in verdict.advice] == [
        "100\u202f% of the failures above baseline, 50\u202f% of all calls.",
        "75.0\u202f% of 80 calls, 1.0\u202f% in the week before.",
    ]


def test_an_hour_with_very_many_calls_is_not_read_call_by_call(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    half_past = clock.now().replace(minute=30, second=0, microsecond=0) - timedelta(hours=2)
    post_runs(project, 60, 0, half_past - timedelta(minutes=11), model="a")
    post_runs(project, 10, 30, half_past + timedelta(minutes=9), model="a")
    day = VerdictRange(clock.now() - timedelta(days=1), clock.now(), clock.now())
    counts = queries.StoredCounts(project.pk, Selection(), stretch_of(day))

    def counted() -> int:
        return sum(cell.attempts for cell in counts.cells_since(half_past, clock.now()))

    assert counted() == 40
    monkeypatch.setattr(queries, "MOST_READ", 99)
    assert counted() == 100


def test_a_new_version_is_compared_with_the_calls_of_its_source(project: Project) -> None:
    """Of two sources, one always failed more."""
    now = clock.now()
    for source, model in product(("crm", "web"), ("a", "b")):
        own, is_new = {"model": model, "source": source}, source == "crm"
        bad = 60 if is_new else 0
        for day in (2, 3):
            post_runs(project, 200 - bad, bad, now - timedelta(days=day), **own, prompt_version="1")
        latest = {**own, "prompt_version": "v2" if is_new else "1"}
        post_runs(project, 80 - bad, bad, now - timedelta(minutes=15), **latest)
    verdict = judged(project, now)
    assert (verdict.finding.cause, verdict.name) == (Cause.PROMPT, "prompt v2")
    assert verdict.rate is not None
    assert verdict.rate.baseline == pytest.approx(0.3)


def test_runs_whose_failing_calls_have_no_end_are_not_said_to_end_well(project: Project) -> None:
    """A sender of calls alone: a run ends with its good call, and no other does."""
    now = clock.now()
    post_runs(project, 300, 0, now - timedelta(days=2), model="a")
    post_runs(project, 40, 0, now - timedelta(minutes=15), model="a")
    bad = {"occurred_at": (now - timedelta(minutes=15)).isoformat(), "model": "a"}
    record(project.pk, [make_event(**bad) for _ in range(40)])
    verdict = judged(project, now)
    assert verdict.rate is not None
    assert (verdict.rate.noun, verdict.rate.bad, verdict.rate.total) == ("call", 40, 80)
    assert verdict.rate.beside is None
    assert "runs" not in verdict.sentence


def test_the_rate_of_a_version_is_known_by_the_hour(project: Project) -> None:
    half_past = clock.now().replace(minute=30, second=0, microsecond=0) - timedelta(hours=2)
    post_runs(project, 300, 0, half_past - timedelta(days=2), model="a", release="r1")
    post_runs(project, 60, 0, half_past - timedelta(minutes=11), model="a", release="r1")
    post_runs(project, 0, 40, half_past + timedelta(minutes=9), model="a", release="r1")
    asked = replace(Selection(), text=Query((Term("release", "r1"),)))
    verdict = verdict_within(project.pk, asked, clock.now())
    assert verdict.rate is not None
    assert (verdict.rate.bad, verdict.rate.total) == (40, 100)

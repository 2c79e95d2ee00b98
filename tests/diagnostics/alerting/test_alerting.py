"""The evaluator: what is watched out of the box, incidents, late events, being killed."""

from datetime import datetime, timedelta
from random import Random

import pytest
from django.test import Client

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.alerting.evaluator import evaluate, evaluate_project
from diagnostics.alerting.incident_models import Incident, IncidentSlice, Transition
from diagnostics.alerting.rule_models import AlertRule, AlertSlot, AlertState, Evaluation
from diagnostics.alerting.rule_rows import create_rule
from diagnostics.alerting.saved_states import ensure_standard_rules
from diagnostics.alerting.series_detectors import SeriesDetector
from diagnostics.alerting.statuses import read_statuses
from diagnostics.analysis.detectors.replay import ProjectDetectors
from diagnostics.analysis.series import SeriesState
from diagnostics.ingest.recording import record
from diagnostics.selection.selection import Selection
from diagnostics.store.aggregation import fold
from diagnostics.store.windows import floor
from tests.console import make_member
from tests.diagnostics.alert_calls import MINUTE, count_calls, count_degraded, degrade
from tests.diagnostics.builders import make_event

pytestmark = pytest.mark.django_db


@pytest.fixture
def now() -> datetime:
    """The begin of a minute, so that minutes can be told."""
    return floor(clock.now(), MINUTE)


def test_s0_58_the_third_degradation_in_an_hour_raises_one_alert(
    project: Project, now: datetime
) -> None:
    count_degraded(project.pk)
    degrade(project, now - 3 * MINUTE, 2)
    evaluate_project(project.pk, now - MINUTE)
    assert not Incident.objects.exists()
    degrade(project, now, 1)
    degrade(project, now, 2, model="fake-2")
    for minute in range(5):
        evaluate_project(project.pk, now + minute * MINUTE)
    incident = Incident.objects.get(project=project)
    slices = IncidentSlice.objects.filter(incident=incident)
    assert [one.slice for one in slices] == [{"provider": "fake", "model": "fake-1"}]
    assert [(one.k, one.bound) for one in slices] == [(3, 3.0)]


def test_s0_58_a_model_that_was_well_and_degrades_three_times_raises_one_alert(
    project: Project, now: datetime
) -> None:
    """Out of the box: each of the runs has three failing calls."""
    ensure_standard_rules()
    begin = now - timedelta(hours=30)
    for model in ("m-1", "m-2"):
        count_calls(project, begin, iter([0.0] * 357), 3, model, 5 * MINUTE)
    for bad, model in ((1.0, "m-1"), (0.0, "m-2")):
        count_calls(project, now - 15 * MINUTE, iter([bad] * 3), 3, model, 5 * MINUTE)
    for minute in range(-20, 1):
        evaluate_project(project.pk, now + minute * MINUTE)
    slices = IncidentSlice.objects.filter(incident=Incident.objects.get(project=project))
    assert [one.slice["model"] for one in slices] == ["m-1"]


def test_every_project_is_watched_without_being_asked(project: Project, now: datetime) -> None:
    assert evaluate(now) == 1
    rules = AlertRule.objects.filter(project=project).order_by("standard")
    assert [rule.standard for rule in rules] == ["change"]
    assert AlertSlot.objects.filter(project=project).count() == 1


def test_a_minute_is_looked_at_once(project: Project, now: datetime) -> None:
    count_degraded(project.pk)
    degrade(project, now - MINUTE, 3)
    assert [evaluate(now), evaluate(now), evaluate(now - MINUTE)] == [1, 0, 0]
    assert Incident.objects.count() == 1
    assert Transition.objects.filter(kind="fired").count() == 1


def test_missed_minutes_are_caught_up_in_order(project: Project, now: datetime) -> None:
    evaluate(now - 7 * MINUTE)
    assert evaluate(now) == 7
    slots = AlertSlot.objects.filter(project=project).order_by("slot")
    assert [row.slot for row in slots] == [now - n * MINUTE for n in range(7, -1, -1)]


@pytest.mark.slow
def test_a_model_that_gets_worse_fires_once_and_recovers_once(
    project: Project, now: datetime
) -> None:
    # From a full hour: how soon it fires depends on where in an hour it begins, 7 to 18 minutes.
    begin = now.replace(minute=0) - timedelta(hours=4)
    shares = [0.03] * 120 + [0.25] * 20 + [0.03] * 100
    count_calls(project, begin, iter(shares), 5, "m-1")
    ensure_standard_rules()
    for minute in range(60, 240):
        evaluate_project(project.pk, begin + minute * MINUTE)
    incident = Incident.objects.get(project=project)
    bad_at = begin + 120 * MINUTE
    assert abs(incident.onset - bad_at) <= 5 * MINUTE
    assert bad_at < incident.fired_at <= bad_at + 12 * MINUTE
    assert incident.cleared_at is not None
    assert incident.state == Incident.State.RESOLVED
    assert incident.title == "acme/m-1, next step"
    kinds = Transition.objects.filter(incident=incident).order_by("at", "pk")
    assert [one.kind for one in kinds] == ["fired", "slice_cleared", "cleared"]


@pytest.mark.slow
def test_the_evaluator_says_each_minute_what_the_detectors_alone_say(
    project: Project, now: datetime
) -> None:
    """Three series get worse together, a fourth later; a fifth is young and well only at times."""
    begin = now - timedelta(hours=5)
    shares = {f"m-{number}": [0.03] * 300 for number in range(4)}
    for model in ("m-0", "m-1", "m-2"):
        shares[model][120:240] = [0.3] * 120
    shares["m-3"][190:250] = [0.3] * 60
    shares["m-4"] = ([0.02] * 10 + [0.9] * 10) * 15
    drawn = {model: Random(model) for model in shares}
    for model, share in shares.items():
        count_calls(project, begin, share, 4, model)
    ensure_standard_rules()
    alone = ProjectDetectors(len(shares))
    for minute in range(300):
        for place, (model, share) in enumerate(shares.items()):
            bad = sum(drawn[model].random() < share[minute] for _ in range(4))
            alone.feed(place, (begin + minute * MINUTE).timestamp(), 4, bad)
        evaluate_project(project.pk, begin + minute * MINUTE)
        told = AlertState.objects.filter(rule__standard="change")
        firing = {one.slice["model"] for one in told if one.state == "firing"}
        assert firing == {name for place, name in enumerate(shares) if alone[place].fire}, minute
    assert all(alone[place].fires for place in range(len(shares)))


@pytest.mark.slow
def test_events_three_hours_late_move_no_alert(project: Project, now: datetime) -> None:
    create_rule(
        project.pk,
        {"name": "Too many failures", "signal": "call_failure_ratio", "detector": "threshold"},
        None,
    )
    begin = now - timedelta(hours=5)
    count_calls(project, begin, iter([0.02] * 300), 2, "m-1")
    ensure_standard_rules()
    for minute in range(270, 300):
        evaluate_project(project.pk, begin + minute * MINUTE)
    count_calls(project, now - timedelta(hours=3, minutes=10), iter([0.9] * 10), 100, "m-1")
    for minute in range(30):
        evaluate_project(project.pk, now + minute * MINUTE)
    assert not Incident.objects.exists()


@pytest.mark.slow
@pytest.mark.parametrize("bad", [0, 30], ids=["healthy", "just recovered"])
def test_a_thousand_failures_that_arrive_an_hour_late_fire_nothing_new(
    project: Project, now: datetime, bad: int
) -> None:
    begin = now - timedelta(hours=5)
    shares = [0.02] * 230 + [0.6] * bad + [0.02] * (70 - bad)
    count_calls(project, begin, shares, 4, "m-1")
    ensure_standard_rules()
    for minute in range(300):
        evaluate_project(project.pk, begin + minute * MINUTE)
    changes = list(Transition.objects.order_by("at", "pk").values_list("kind", flat=True))
    assert changes == (["fired", "slice_cleared", "cleared"] if bad else [])
    late = [
        make_event(
            provider="acme",
            model="m-1",
            correlation_id=f"late-{number}",
            occurred_at=(now - timedelta(minutes=90) + number * timedelta(seconds=2)).isoformat(),
        )
        for number in range(1_000)
    ]
    for first in range(0, len(late), 100):
        record(project.pk, late[first : first + 100])
    while fold():
        pass
    for minute in range(60):
        evaluate_project(project.pk, now + minute * MINUTE)
    assert list(Transition.objects.order_by("at", "pk").values_list("kind", flat=True)) == changes
    assert Incident.objects.count() == (1 if bad else 0)


def test_every_look_is_kept_with_its_numbers(project: Project, now: datetime) -> None:
    count_calls(project, now - 9 * MINUTE, iter([0.1] * 10), 6, "m-1")
    evaluate(now)
    looks = Evaluation.objects.filter(state__rule__standard="change")
    (look,) = looks
    assert (look.n, look.rule_version, look.slot) == (60, 1, now)
    assert look.value < look.bound
    assert look.verdict == "clears"


def keep_as_earlier(row: AlertState, state: str, fire: list[float] | None) -> None:
    """Make the row of an alarm one of an earlier release, whose rules had the detectors."""
    row.state = state
    row.detector_state["watch"] = {"form": 2, "fire": fire}
    row.save()
    SeriesDetector.objects.all().delete()


def test_a_detector_kept_by_an_earlier_release_begins_with_its_past(
    project: Project, now: datetime
) -> None:
    count_calls(project, now - timedelta(hours=5), iter([0.05] * 300), 6, "m-1")
    evaluate(now)
    row = SeriesDetector.objects.get()
    known = row.detector_state["watch"]["usual"]
    row.detector_state["watch"] = {"form": 2, "fire": None}
    row.save()
    evaluate(now + MINUTE)
    row.refresh_from_db()
    assert row.detector_state["watch"]["usual"][2] == pytest.approx(known[2], rel=0.1)


@pytest.mark.slow
def test_an_upgrade_of_the_detector_neither_ends_nor_raises_an_alert(
    project: Project, now: datetime, client: Client
) -> None:
    """m-1 fires and m-2 does not, as an earlier release saw them; both fail as before."""
    begin = now - timedelta(hours=5)
    for model in ("m-1", "m-2"):
        count_calls(project, begin, iter([0.03] * 240 + [0.6] * 61), 4, model)
    ensure_standard_rules()
    for minute in range(230, 250):
        evaluate_project(project.pk, begin + minute * MINUTE)
    rows = {row.slice["model"]: row for row in AlertState.objects.all()}
    assert {row.state for row in rows.values()} == {"firing"}
    fired_at = begin + 245 * MINUTE
    keep_as_earlier(rows["m-1"], "firing", [fired_at.timestamp(), fired_at.timestamp() - 300])
    keep_as_earlier(rows["m-2"], "ok", None)
    IncidentSlice.objects.filter(state=rows["m-2"]).delete()
    changes = Transition.objects.count()
    evaluate_project(project.pk, begin + 250 * MINUTE)
    assert Transition.objects.count() == changes
    for row in rows.values():
        row.refresh_from_db()
    assert [rows[model].state for model in ("m-1", "m-2")] == ["firing", "ok"]
    statuses = read_statuses(project.pk, Selection(), begin + 250 * MINUTE).series
    found = {key.model: (one.state, one.anew_since) for key, one in statuses.items()}
    anew = begin + 250 * MINUTE
    assert found == {"m-1": (SeriesState.DEGRADING, anew), "m-2": (SeriesState.OK, anew)}
    evaluate_project(project.pk, now)
    client.force_login(make_member(project))
    page = client.get("/").content.decode()
    assert "New detector since the upgrade at" in page


@pytest.mark.slow
def test_an_alarm_that_was_taken_over_ends_when_the_calls_are_well(
    project: Project, now: datetime
) -> None:
    count_calls(project, now - timedelta(hours=5), iter([0.03] * 301), 10, "m-1")
    evaluate(now - timedelta(hours=3))
    row = AlertState.objects.get()
    fired_at = (now - timedelta(hours=3, minutes=10)).timestamp()
    keep_as_earlier(row, "firing", [fired_at, fired_at - 600])
    for minute in range(-179, 1):
        evaluate_project(project.pk, now + minute * MINUTE)
        row.refresh_from_db()
        assert row.state == "firing" or minute > -175
    assert row.state == "ok"


@pytest.mark.slow
def test_two_models_that_fail_together_are_one_incident(project: Project, now: datetime) -> None:
    begin = now - timedelta(hours=3)
    for model in ("m-1", "m-2", "m-3"):
        shares = [0.03] * 150 + [0.6] * 31
        count_calls(project, begin, iter(shares), 5, model)
    ensure_standard_rules()
    for minute in range(140, 181):
        evaluate_project(project.pk, begin + minute * MINUTE)
    fired = list(Incident.objects.values_list("title", "cause"))
    assert len(fired) == 1, fired
    assert IncidentSlice.objects.filter(incident__title=fired[0][0]).count() == 3


def test_a_watch_survives_being_put_by(project: Project, now: datetime) -> None:
    begin = now - timedelta(hours=8)
    count_calls(project, begin, iter([0.05] * 480), 3, "m-1")
    ensure_standard_rules()
    for minute in (470, 475, 479):
        evaluate_project(project.pk, begin + minute * MINUTE)
    assert AlertState.objects.get(rule__standard="change").state == "ok"
    row = SeriesDetector.objects.get()
    learned = row.memory["learned"]
    assert 5 <= sum(calls > 0 for calls in learned["calls_by_place"]) <= 10
    assert len(str(row.detector_state)) < 8_000

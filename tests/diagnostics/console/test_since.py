"""Rows, curves, series of the API and the sentence say since when alike."""

from datetime import datetime

import pytest

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.alerting.statuses import recent_verdict_of
from diagnostics.console.api import list_series
from diagnostics.console.model_story import model_story
from diagnostics.console.now import now_context
from diagnostics.selection.selection import Selection
from diagnostics.verdict.verdicts import describe
from tests.incidents.drawn_runs import make_incident
from tests.incidents.traffic_model import TrafficShape
from tests.incidents.writing import write_incident
from tests.shifted_clock import shift_clock

pytestmark = pytest.mark.django_db

SHAPE = TrafficShape(40.0, 5.0, 0.7, 3, 2, 1, 2)


@pytest.fixture
def moment(db: None) -> datetime:
    shift_clock()
    return clock.now()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["model", "release"])
def test_all_say_the_same_of_the_same_runs(kind: str, moment: datetime) -> None:
    project = Project.objects.create(slug="p", name="P")
    incident = make_incident(kind, 2, moment, shape=SHAPE)
    write_incident(project, incident)
    whole = Selection()

    verdict = recent_verdict_of(project.pk, whole, moment)
    assert verdict.since is not None
    lines = now_context(project.pk, whole, moment)["lines"]
    rows = {ln.key: ln.since for ln in lines if ln.since}
    series = {
        (one["environment"], one["node"], one["provider"], one["model"]): one["since"]
        for one in list_series(project.pk, whole, moment)[0]
        if one["since"]
    }
    assert rows
    assert rows == series
    hit = {key: since for key, since in rows.items() if key in verdict.touched}
    assert set(hit.values()) == {verdict.since}
    bars = {ln.hot_from for ln in lines if ln.since == verdict.since}
    assert len(bars) == 1

    provider, model = next(iter(hit))[2:]
    shown = model_story(project.pk, whole, provider, model, moment)
    assert describe(shown["verdict"]) == describe(verdict)
    assert shown["chart"].onset is not None
    assert shown["chart"].onset.at == verdict.since

"""A filter shows what a verdict says of the series it keeps; it makes no other verdict."""

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import product
from typing import Any

import pytest

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.alerting import statuses
from diagnostics.alerting.rule_models import ProjectStatus
from diagnostics.alerting.statuses import StatusSet, read_status, recent_verdict_of, store_statuses
from diagnostics.selection.selection import Selection, read_selection
from diagnostics.verdict.cause import Cause
from tests.console import post_runs
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


@pytest.fixture
def project(moment: datetime) -> Project:
    project = Project.objects.create(slug="p", name="P")
    write_incident(project, make_incident("model", 2, moment, shape=SHAPE))
    return project


@pytest.fixture
def stored(project: Project, moment: datetime) -> StatusSet:
    found = store_statuses(project.pk, moment)
    assert found.verdict.finding.cause is Cause.MODEL
    return found


@pytest.fixture
def nothing_is_judged(stored: StatusSet, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*asked: object) -> None:
        pytest.fail(f"judged: {asked}")

    monkeypatch.setattr(statuses, "verdict_of", refuse)


@pytest.mark.slow
@pytest.mark.usefixtures("nothing_is_judged")
def test_a_filter_on_what_is_hit_keeps_the_cause_that_was_found_among_all_calls(
    subtests: pytest.Subtests, project: Project, stored: StatusSet, moment: datetime
) -> None:
    hit = next(iter(stored.verdict.touched))._asdict()
    fields = ("provider", "model", "environment", "node")
    for field, span in product(fields, ("1h", "24h", "90d")):
        with subtests.test(field=field, span=span):
            selection = read_selection({field: hit[field], "range": span})
            verdict = read_status(project.pk, selection, moment).verdict
            assert verdict.told == stored.verdict.told
            assert verdict.since == stored.verdict.since


@pytest.mark.slow
@pytest.mark.usefixtures("nothing_is_judged")
def test_a_filter_on_what_goes_well_says_so(
    project: Project, stored: StatusSet, moment: datetime
) -> None:
    well = {
        (key.provider, key.model) for key, one in stored.series.items() if one.state == "ok"
    } - {(key.provider, key.model) for key in stored.verdict.touched}
    provider, model = next(iter(well))
    asked: dict[str, Any] = {"provider": provider, "model": model}
    verdict = recent_verdict_of(project.pk, Selection(filters=asked), moment)
    assert (verdict.state, verdict.since) == ("ok", None)
    assert verdict.sentence == "The model is within baseline."


@pytest.mark.slow
@pytest.mark.usefixtures("nothing_is_judged")
def test_a_filter_that_keeps_no_series_has_no_data(project: Project, moment: datetime) -> None:
    verdict = recent_verdict_of(project.pk, Selection(filters={"model": "nobody"}), moment)
    assert verdict.state == "not_enough_data"


@pytest.mark.slow
def test_local_calls_are_judged_when_they_are_asked_for(project: Project, moment: datetime) -> None:
    post_runs(project, 90, 2, moment - timedelta(days=2), environment="local", model="tiny")
    post_runs(project, 10, 30, moment - timedelta(hours=2), environment="local", model="tiny")
    store_statuses(project.pk, moment)
    verdict = recent_verdict_of(project.pk, Selection(filters={"environment": "local"}), moment)
    assert verdict.state == "degrading"
    assert {key.model for key in verdict.touched} == {"tiny"}


@pytest.mark.slow
def test_what_degrades_beside_every_cause_is_judged_alone(
    project: Project, stored: StatusSet, moment: datetime
) -> None:
    hit = next(iter(stored.verdict.touched))
    unexplained = replace(stored.verdict, touched=frozenset({hit._replace(model="another")}))
    status = ProjectStatus.objects.get(project=project)
    status.verdict = statuses.VERDICT.dump_python(
        unexplained, mode="json", exclude=statuses.FUNCTIONS
    )
    status.save()
    verdict = recent_verdict_of(project.pk, Selection(filters={"model": hit.model}), moment)
    assert verdict.state == "degrading"
    assert hit in verdict.touched


@pytest.mark.slow
def test_times_that_were_asked_for_are_judged_by_themselves(
    project: Project, stored: StatusSet, moment: datetime
) -> None:
    before = Selection(begin=moment - timedelta(days=3), end=moment - timedelta(days=2))
    verdict = read_status(project.pk, before, moment).verdict
    assert verdict.since is None
    assert verdict.told.reason != stored.verdict.told.reason

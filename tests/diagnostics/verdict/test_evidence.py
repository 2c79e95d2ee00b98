"""What was seen of a kind of failure, from what is stored."""

from datetime import timedelta

import pytest

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.analysis.series import SeriesKey
from diagnostics.ingest.recording import record
from diagnostics.store.aggregation import fold
from diagnostics.verdict.evidence import FailedCalls
from diagnostics.verdict.queries import evidence_of
from failsoft.events import PostedEvent
from tests.diagnostics.builders import make_event, succeeded
from tests.shifted_clock import shift_clock

pytestmark = pytest.mark.django_db


@pytest.fixture
def project() -> Project:
    shift_clock()
    return Project.objects.create(slug="p", name="P")


def broken(path: str, age: timedelta, **changes: object) -> PostedEvent:
    return make_event(
        occurred_at=(clock.now() - age).isoformat(),
        **{
            "parse_error_type": "schema_invalid",
            "validation_errors": [{"path": path, "code": "missing", "message": "no"}],
            **changes,
        },
    )


def unanswered(why: str | None, age: timedelta) -> PostedEvent:
    return broken(
        "",
        age,
        name="graph.next_step.provider_error",
        parse_error_type=None,
        validation_errors=None,
        raw_output_preview=None,
        attributes={"call_error_type": why} if why else None,
    )


def good(age: timedelta) -> PostedEvent:
    return PostedEvent.model_validate(succeeded(occurred_at=(clock.now() - age).isoformat()))


def test_places_are_compared_with_the_week_before_the_onset(project: Project) -> None:
    earlier, lately = timedelta(days=2), timedelta(minutes=20)
    record(project.pk, [broken("/steps/0/tool", earlier) for _ in range(40)])
    record(project.pk, [good(earlier) for _ in range(60)])
    record(project.pk, [broken("/steps/3/tool", lately) for _ in range(10)])
    record(project.pk, [broken("/due_date", lately) for _ in range(8)])
    # Of another model: neither its calls nor its failures are asked for.
    record(project.pk, [broken("/due_date", earlier, model="other") for _ in range(50)])
    fold()
    now = clock.now()
    who = SeriesKey(None, "next_step", "fake", "fake-1")

    found = evidence_of(project.pk, who, now - timedelta(hours=1), now, "schema_invalid")

    assert (found.now, found.before) == (FailedCalls(18, 18), FailedCalls(40, 100))
    assert found.sampled == 18
    assert [(one.name, one.sampled, one.before) for one in found.pointers] == [
        # 10 of 18 calls against 40 of 100 have risen less than 8 against none.
        ("/due_date", 8, 0),
        ("/steps/*/tool", 10, 40),
    ]


@pytest.mark.parametrize(
    ("kind", "told"),
    [("call_timeout", "timeout"), ("call_other", "circuit_open"), ("call_other", None)],
)
def test_calls_without_an_answer_are_found_by_why(
    project: Project, kind: str, told: str | None
) -> None:
    lately = timedelta(minutes=20)
    record(project.pk, [unanswered(told, lately), unanswered("rate_limited", lately)])
    now = clock.now()

    found = evidence_of(project.pk, None, now - timedelta(hours=1), now, kind)

    assert (found.sampled, found.now) == (1, FailedCalls(1, 2))
    assert list(found.call_errors) == ([told] if told else [])

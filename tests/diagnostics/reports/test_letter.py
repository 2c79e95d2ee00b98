"""Documents in words: subjects, verdicts, standings, and what is folded."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from diagnostics.reports.document import (
    IncidentFigures,
    IncidentInPeriod,
    ReportDocument,
    has_news,
    name_of,
    status_of,
)
from diagnostics.reports.rendering import Letter, moment_of, subject_of
from tests.diagnostics.reports.builders import UNTIL, make_document, make_model

CALM: dict[str, Any] = {
    "degradation": None,
    "groups": [],
    "incidents": None,
    "advice": [],
    "models": [make_model(f"m/{at}", 0.02) for at in range(6)],
    "total": make_model("all", 0.012, runs=1000, runs_before=1000, degraded_before=12),
}
NOTHING = make_model("all", 0.0, runs=0, runs_before=0, degraded_before=0, curve=[])
# changes -> subject
SUBJECTS: dict[str, tuple[dict[str, Any], str]] = {
    "degrading": (
        {},
        "Planner weekly: degraded 6.1 % (+2.3 pt), claude-haiku since Thu 14:30 Europe/Berlin",
    ),
    "calm": (CALM, "Planner weekly: degraded 1.2 % (±0.0 pt), all 6 models within baseline"),
    "one model": (
        {**CALM, "models": [make_model("a/b", 0.02)]},
        "Planner weekly: degraded 1.2 % (±0.0 pt), b within baseline",
    ),
    "worse without an onset": (
        {**CALM, "models": [make_model("a/b", 0.3)]},
        "Planner weekly: degraded 1.2 % (±0.0 pt), worst b",
    ),
    "to watch": (
        {**CALM, "models": [make_model("a/b", 0.12, runs=30)]},
        "Planner weekly: degraded 1.2 % (±0.0 pt), watch b",
    ),
    "too few": (
        {**CALM, "total": make_model("all", 0.0, runs=1), "models": []},
        "Planner weekly: 1 run, too few to judge",
    ),
    "nothing ran": ({**CALM, "total": NOTHING, "models": []}, "Planner weekly: no runs"),
    "weekdays": ({**CALM, "cadence": "weekdays", "total": NOTHING}, "Planner daily: no runs"),
    "no model has enough": (
        {**CALM, "models": [make_model("a/b", 0.0, runs=3)]},
        "Planner weekly: degraded 1.2 % (±0.0 pt), no model with enough runs",
    ),
    "s15 a hostile title": (
        {**CALM, "total": NOTHING, "title": "x\r\nBcc: a@b"},
        "x Bcc: a@b weekly: no runs",
    ),
}


@pytest.mark.parametrize(("changes", "expected"), SUBJECTS.values(), ids=SUBJECTS)
def test_the_subject_is_the_verdict(changes: dict[str, Any], expected: str) -> None:
    assert subject_of(make_document(**changes)) == expected


def test_a_time_long_ago_is_told_with_its_date() -> None:
    changes: dict[str, Any] = {"since": UNTIL - timedelta(days=31), "first": date(2026, 10, 23)}
    begun = make_document().degradation
    assert begun is not None
    old = begun.model_copy(update={"since": datetime(2026, 10, 25, 13, 30, tzinfo=UTC)})
    made = make_document(**changes, degradation=old, cadence="monthly")
    assert subject_of(made).endswith("claude-haiku since 25 Oct 14:30 Europe/Berlin")


def test_a_time_after_the_period_is_told_with_its_date() -> None:
    made = make_document()
    assert moment_of(UNTIL + timedelta(days=3), made) == "26 Nov 00:00 Europe/Berlin"


def test_a_day_of_another_length_says_so() -> None:
    made = make_document(
        since=datetime(2026, 3, 28, 23, tzinfo=UTC),
        until=datetime(2026, 3, 29, 22, tzinfo=UTC),
        first=date(2026, 3, 29),
        last=date(2026, 3, 29),
        degradation=None,
    )
    period = Letter(made).period
    assert period == "Sun 29 Mar 2026 (23 hours: the clocks changed), Europe/Berlin"


def test_a_day_that_is_half_an_hour_longer_says_so() -> None:
    made = make_document(
        since=datetime(2026, 4, 4, 13, tzinfo=UTC),
        until=datetime(2026, 4, 5, 13, 30, tzinfo=UTC),
        first=date(2026, 4, 5),
        last=date(2026, 4, 5),
        zone="Australia/Lord_Howe",
        degradation=None,
    )
    period = Letter(made).period
    assert period == "Sun 5 Apr 2026 (24.5 hours: the clocks changed), Australia/Lord_Howe"


def test_the_table_has_every_model_up_to_twenty_the_worst_first() -> None:
    letter = Letter(make_document(20))
    assert letter.models[0].name == "anthropic/claude-haiku"
    assert (len(letter.models), letter.folded) == (20, [])
    (folded,) = Letter(make_document(40)).folded
    assert folded.startswith("20 more models within baseline over the whole period: ")
    assert folded.endswith(" and 14 more.")


CALM_WEEK = {"share": 0.054, "runs": 4823, "degraded_usual": 72}


@pytest.mark.parametrize("news", [{"since": UNTIL - timedelta(days=1)}, {"incidents": 1}])
def test_a_model_of_the_verdict_or_an_incident_is_never_folded_into_the_baseline(
    news: dict[str, Any],
) -> None:
    # Over the whole week it is within its baseline, and 24 models have a higher share.
    rest = [make_model(f"m/{at}", 0.07) for at in range(24)]
    calm = make_model("anthropic/claude-haiku-4", **CALM_WEEK)
    made = make_document(models=[*rest, calm.model_copy(update=news)])
    letter = Letter(made)
    assert letter.models[0].name == "anthropic/claude-haiku-4"
    assert letter.models[0].state == ("degrading" if "since" in news else "ok · 1 incident")
    assert not any("haiku" in line for line in letter.folded)
    assert "haiku" in str(Letter(make_document(models=[*rest, calm])).folded)


def test_beyond_twenty_the_bad_are_counted_as_bad() -> None:
    models = [make_model(f"m/{at:03}", 0.3) for at in range(200)]
    letter = Letter(make_document(models=models))
    assert len(letter.models) == 20
    assert letter.folded[0].startswith("180 more models above baseline or with an incident: ")


def test_few_runs_are_low_volume_whatever_their_share() -> None:
    made = make_model(runs=19, share=1.0)
    assert status_of(made) == "low_volume"
    letter = Letter(make_document(**{**CALM, "models": [made]}))
    assert [entry.tone for entry in letter.models] == ["quiet"]
    assert "Too few runs" in letter.lead


def test_a_degrading_model_has_a_curve_from_its_onset_on() -> None:
    begun = UNTIL - timedelta(days=2)
    named = make_model(since=begun)
    (curve,) = Letter(make_document(models=[named])).curves
    assert curve.bad_from == 20
    assert (len(curve.shares), len(curve.spark)) == (28, 28)
    assert "Europe/Berlin" in curve.text
    early = named.model_copy(update={"since": UNTIL - timedelta(days=30)})
    assert Letter(make_document(models=[early])).curves[0].bad_from == 0
    assert Letter(make_document(**CALM)).curves == []


def test_two_causes_are_two_sentences() -> None:
    first = make_document().degradation
    assert first is not None
    second = first.model_copy(
        update={
            "subject": "openai/gpt-4.1",
            "since": UNTIL - timedelta(hours=3),
            "cause": "Looks like our prompt co-v7.",
        }
    )
    letter = Letter(make_document(others=[second]))
    assert letter.lead == "Degrading since Thu 14:30 Europe/Berlin:"
    ((lead, rest),) = letter.others
    assert lead == "Degrading since Sun 21:00 Europe/Berlin:"
    assert rest.startswith("openai/gpt-4.1, 31")
    assert rest.endswith("Looks like our prompt co-v7.")


def test_incidents_are_listed_with_their_cause_and_how_they_ended() -> None:
    begun = UNTIL - timedelta(days=1)
    entry = IncidentInPeriod(
        title="acme/m-1", severity="critical", cause="Looks like our prompt (v7)", onset=begun,
        ended_at=begun + timedelta(minutes=14), ending="by ann", url="/incidents/4/",
    )  # fmt: skip
    found = make_document().incidents
    assert found is not None
    still = entry.model_copy(update={"ended_at": None, "ending": ""})
    listed = found.model_copy(update={"entries": [entry, still]})
    over, open_one = Letter(make_document(incidents=listed)).incidents
    assert over == (
        "acme/m-1 · critical",
        "Looks like our prompt (v7). Since Sun 00:00 Europe/Berlin, resolved by ann "
        "Sun 00:14 Europe/Berlin, after 14\N{NARROW NO-BREAK SPACE}min.",
        "/incidents/4/",
    )
    assert open_one[1].endswith("Since Sun 00:00 Europe/Berlin, open.")


def test_money_spent_on_retries_is_said_where_prices_are_known() -> None:
    total = make_model("all models", 0.06, retry_usd=Decimal("4.1"))
    letter = Letter(make_document(total=total))
    assert letter.retries.startswith("Spent on retries: $4.10, 184")
    assert letter.total.figures[-1] == "$4.10"
    assert Letter(make_document()).retries.endswith("No prices are known.")


@pytest.mark.parametrize(
    ("changes", "expected"),
    {
        "a degradation": ({}, True),
        "all calm": (CALM, False),
        "a model to watch": ({**CALM, "models": [make_model(share=0.3)]}, True),
        "a group": ({**CALM, "groups": make_document().groups}, True),
        "an incident": ({**CALM, "incidents": make_document().incidents}, True),
        "runs that stopped": (
            {**CALM, "total": make_model("all", 0.0, runs=0), "models": []},
            True,
        ),
    }.values(),
    ids=["degradation", "calm", "watch", "group", "incident", "stopped"],
)
def test_news_is_what_differs_from_calm(changes: dict[str, Any], expected: bool) -> None:
    quality = make_document().quality.model_copy(update={"silent": []})
    assert has_news(make_document(**{**changes, "quality": quality})) is expected


def test_a_silent_source_is_news() -> None:
    assert has_news(make_document(**CALM))


def test_a_project_without_incidents_says_so() -> None:
    none = IncidentFigures(
        count=0,
        open=0,
        acknowledged=0,
        acknowledge_seconds=None,
        clear_seconds=None,
        judged=0,
        false_alarms=0,
        url="/",
    )
    assert Letter(make_document(incidents=none)).incident_figures == ["No incidents."]


def test_sources_without_successes_are_named() -> None:
    quality = make_document().quality.model_copy(
        update={"without_successes": ["cron"], "silent": []}
    )
    told = Letter(make_document(quality=quality)).quality
    assert told[1].startswith("No successes reported by cron: ")


def test_a_document_survives_being_kept() -> None:
    made = make_document()
    assert ReportDocument.model_validate_json(made.model_dump_json()) == made
    assert ReportDocument.model_validate(made.model_dump(mode="json")) == made


def test_s15_names_are_one_line_and_cut() -> None:
    assert name_of("x\r\nBcc: a@b") == "x Bcc: a@b"
    assert name_of("") == name_of(None) == "unknown"
    assert len(name_of("m" * 500)) == 60


@pytest.mark.parametrize(
    ("changes", "tone", "said"),
    [
        ({}, "bad", "Degrading since Thu 14:30 Europe/Berlin:"),
        ({"models": [make_model("a/b", 0.12, runs=30)]}, "warn", "a/b is above its baseline:"),
        (
            {"models": [make_model("a/b", 0.1, runs=30, runs_usual=0)]},
            "warn",
            "a/b is new and to be watched:",
        ),
        ({"models": [make_model("a/b", 0.02)]}, "good", "The model is within its baseline."),
        (
            {"models": [make_model("a/b", 0.02, runs_usual=0, runs_before=0)]},
            "good",
            "No baseline yet:",
        ),
        ({"models": [], "total": NOTHING}, "quiet", "No run ended in this period."),
    ],
    ids=["degrading", "watch", "new", "calm", "first", "nothing"],
)
def test_the_verdict_has_a_tone_and_a_first_half(
    changes: dict[str, Any], tone: str, said: str
) -> None:
    letter = Letter(make_document(**{**CALM, **changes} if changes else {}))
    assert (letter.tone, letter.lead) == (tone, said)


def test_incidents_that_nobody_saw_to_are_counted_only() -> None:
    found = IncidentFigures(
        count=1, open=1, acknowledged=0, acknowledge_seconds=None,
        clear_seconds=None, judged=0, false_alarms=0, url="/",
    )  # fmt: skip
    assert Letter(make_document(incidents=found)).incident_figures == [
        "1 incident in the period, 1 open when this report was made."
    ]


def test_without_a_source_nothing_is_said_of_denominators() -> None:
    quality = make_document().quality.model_copy(update={"sources": 0, "silent": []})
    assert len(Letter(make_document(quality=quality)).quality) == 1

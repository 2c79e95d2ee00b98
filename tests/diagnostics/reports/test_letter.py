"""Documents in words: subjects, verdicts, standings, and what is folded."""

from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from diagnostics.reports.document import (
    IncidentFigures,
    ReportDocument,
    has_news,
    name_of,
    standing_of,
)
from diagnostics.reports.rendering import subject_of, write_letter
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
    "degrading": ({}, "Planner weekly: degraded 6.1 % (+2.3 pt), claude-haiku since Thu 14:30"),
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
    assert subject_of(made).endswith("claude-haiku since 25 Oct 14:30")


def test_a_day_of_another_length_says_so() -> None:
    made = make_document(
        since=datetime(2026, 3, 28, 23, tzinfo=UTC),
        until=datetime(2026, 3, 29, 22, tzinfo=UTC),
        first=date(2026, 3, 29),
        last=date(2026, 3, 29),
        degradation=None,
    )
    period = write_letter(made).period
    assert period == "Sun 29 Mar 2026 (23 hours: the clocks changed), Europe/Berlin"


def test_the_worst_comes_first_and_the_healthy_are_folded() -> None:
    letter = write_letter(make_document(40))
    assert [entry.name for entry in letter.models] == ["anthropic/claude-haiku"]
    assert letter.folded[0].startswith("Within baseline over the whole period, 39 models: ")
    assert letter.folded[0].endswith(" and 33 more.")


def test_beyond_eight_the_bad_are_folded_too() -> None:
    models = [make_model(f"m/{at:03}", 0.3) for at in range(200)]
    letter = write_letter(make_document(models=models))
    assert len(letter.models) == 8
    assert letter.folded[0].startswith("192 more above their baseline: ")


def test_few_runs_are_judged_by_nobody() -> None:
    made = make_model(runs=19, share=1.0)
    assert standing_of(made) == "low_volume"
    letter = write_letter(make_document(**{**CALM, "models": [made]}))
    assert letter.folded == [
        "Fewer than 20 runs, 1 model: anthropic/claude-haiku "
        "(100.0\N{NARROW NO-BREAK SPACE}% of 19)."
    ]
    assert "Too few runs" in letter.lead


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
    assert write_letter(make_document(incidents=none)).incidents == ["No incident."]


def test_sources_without_successes_are_named() -> None:
    quality = make_document().quality.model_copy(
        update={"without_successes": ["cron"], "silent": []}
    )
    told = write_letter(make_document(quality=quality)).quality
    assert told[1].startswith("No denominator: cron never told of a success")


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
        ({}, "bad", "Degrading since Thu 14:30:"),
        ({"models": [make_model("a/b", 0.12, runs=30)]}, "warn", "a/b is above its baseline:"),
        (
            {"models": [make_model("a/b", 0.1, runs=30, runs_usual=0)]},
            "warn",
            "a/b is new and to be watched:",
        ),
        ({"models": [make_model("a/b", 0.02)]}, "good", "The model is within its baseline."),
        ({"models": [], "total": NOTHING}, "quiet", "No run ended in this period."),
    ],
    ids=["degrading", "watch", "new", "calm", "nothing"],
)
def test_the_verdict_has_a_tone_and_a_first_half(
    changes: dict[str, Any], tone: str, said: str
) -> None:
    letter = write_letter(make_document(**{**CALM, **changes} if changes else {}))
    assert (letter.tone, letter.lead) == (tone, said)


def test_a_period_without_runs_names_those_before() -> None:
    gone = make_model("all", 0.0, runs=0, curve=[])
    letter = write_letter(make_document(**{**CALM, "models": [], "total": gone}))
    assert letter.total.facts == [("runs", "0"), ("before", "1,330 runs")]
    assert (letter.total.spark, letter.total.peak) == ("", "")


def test_incidents_that_nobody_saw_to_are_counted_only() -> None:
    found = IncidentFigures(
        count=1, open=1, acknowledged=0, acknowledge_seconds=None,
        clear_seconds=None, judged=0, false_alarms=0, url="/",
    )  # fmt: skip
    assert write_letter(make_document(incidents=found)).incidents == ["1 incident, 1 still open."]


def test_without_a_source_nothing_is_said_of_denominators() -> None:
    quality = make_document().quality.model_copy(update={"sources": 0, "silent": []})
    assert len(write_letter(make_document(quality=quality)).quality) == 1

"""Documents for tests: a week in which one of several models degraded."""

from datetime import UTC, date, datetime
from random import Random
from typing import Any

from diagnostics.analysis.series import SeriesState
from diagnostics.reports.document import (
    AdviceFigures,
    Degradation,
    GroupFigures,
    IncidentFigures,
    ModelFigures,
    QualityFigures,
    ReportDocument,
)

SINCE = datetime(2026, 11, 15, 23, tzinfo=UTC)
UNTIL = datetime(2026, 11, 22, 23, tzinfo=UTC)


def make_model(
    name: str = "anthropic/claude-haiku", share: float = 0.31, **changes: Any
) -> ModelFigures:
    """Give a model that ran 1,400 times, beside 4 % that are usual, and how it stands by that."""
    random = Random(name)
    runs = changes.pop("runs", 1400)
    curve = [
        (runs // 28, round(runs // 28 * share * random.random() * (at > 16))) for at in range(28)
    ]
    state = SeriesState.DEGRADING if share > 0.25 else SeriesState.WATCH
    given: dict[str, Any] = {
        "name": name,
        "state_at_end": state if share >= 0.1 and runs >= 20 else None,
        "url": f"/?from=2026-11-15&model={name.rpartition('/')[2]}",
        "runs": runs,
        "degraded": round(runs * share),
        "ok_first": round(runs * (0.9 - share)),
        "repaired": round(runs * 0.08),
        "retry_tokens": 184_220,
        "retry_ms": 5_400_000,
        "runs_before": 1330,
        "degraded_before": 53,
        "runs_usual": 1330,
        "degraded_usual": 53,
        "curve": curve,
        **changes,
    }
    return ModelFigures(**given)


def make_document(number: int = 7, **changes: Any) -> ReportDocument:
    """Give a weekly report; the first model is the one that degraded."""
    rest = [make_model(f"openai/gpt-4o-mini-{at}", 0.004 * (at % 9)) for at in range(1, number)]
    given: dict[str, Any] = {
        "project": "Planner",
        "title": "Planner",
        "cadence": "weekly",
        "zone": "Europe/Berlin",
        "since": SINCE,
        "until": UNTIL,
        "first": date(2026, 11, 16),
        "last": date(2026, 11, 22),
        "slot_seconds": 21_600,
        "url": "/?from=2026-11-15T23:00:00&to=2026-11-22T23:00:00&tz=Europe/Berlin",
        "total": make_model(
            "all models", 0.061, runs=9_812, url="/", runs_before=9_240, degraded_before=351
        ),
        "models": [make_model(), *rest],
        "degradation": Degradation(
            subject="anthropic/claude-haiku",
            since=datetime(2026, 11, 19, 13, 30, tzinfo=UTC),
            bad=128,
            total=412,
            noun="run",
            baseline=0.04,
            kind="truncated",
            cause="Looks like the model or provider, not us.",
        ),
        "groups": [
            GroupFigures(
                state="regressed",
                text="truncated at /steps/*/args, node plan, anthropic/claude-haiku",
                seen=391,
                url="/failures/7/",
            ),
            GroupFigures(
                state="new",
                text="schema invalid at /steps/*/tool, node plan, openai/gpt-4o-mini-1 and 2 more",
                seen=44,
                url="/failures/9/",
            ),
            GroupFigures(
                state="resolved", text="not json, node next_step", seen=0, url="/failures/4/"
            ),
        ],
        "advice": [
            AdviceFigures(
                text="Raise the budget of output tokens, or ask for shorter plans.",
                evidence="Answers that were cut off end at 512 tokens; the budget is 512.",
                url="/failures/?kind=truncated",
            )
        ],
        "incidents": IncidentFigures(
            count=2,
            open=1,
            acknowledged=2,
            acknowledge_seconds=252.0,
            clear_seconds=4_860.0,
            judged=1,
            false_alarms=0,
            url="/incidents/",
        ),
        "quality": QualityFigures(
            events=14_920,
            rejected=12,
            duplicates=31,
            sources=4,
            silent=["batch-planner"],
            url="/ingest/",
        ),
        **changes,
    }
    return ReportDocument(**given)

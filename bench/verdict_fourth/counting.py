"""Cases of the fourth making, counted in memory: what the API would say of them."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from agents.demo.drawn_runs import DrawnRun
from bench.drawn_counts import DrawnCounts, detect
from bench.verdict_fourth.projects import CALL_KINDS
from bench.verdict_fourth.stories import FourthCase
from diagnostics.verdict.advice import advise, part_of
from diagnostics.verdict.curves import VerdictRange
from diagnostics.verdict.evidence import Evidence
from diagnostics.verdict.judging import Diagnosis, judge_range
from diagnostics.verdict.wording import cause_words

DAY = timedelta(days=1)


def answer_from_counts(case: FourthCase) -> dict[str, Any]:
    """Return the fields of GET /api/v1/verdict that are judged, without a database."""
    day = VerdictRange(case.now - DAY, case.now, case.now)
    silent = case.script.silent
    runs = list(_posted(case))
    found = judge_range(day, partial(DrawnCounts, runs, case.told(), silent=silent), detect(runs))
    said = [_describe(one) for one in found]
    return {**said[0], "incidents": [one for one in said if one["since"]]}


def _posted(case: FourthCase) -> Iterator[DrawnRun]:
    """Yield the runs as they are told: of a silent source only calls with a bad answer."""
    for run in case.runs():
        if run.place.source not in case.script.silent:
            yield run
        elif bad := tuple(kind for kind in run.calls if kind and kind not in CALL_KINDS):
            yield replace(run, calls=bad)


def _describe(one: Diagnosis) -> dict[str, Any]:
    finding = one.finding
    advice = (
        advise(
            finding.top_kind,
            finding.cause,
            Evidence(),
            is_compared=finding.is_compared,
            part=part_of(finding),
        )
        if one.since
        else []
    )
    return {
        "cause": finding.cause.value if finding.cause else None,
        "cause_value": finding.value,
        "since": _text(one.since),
        "since_low": _text(one.since_low),
        "since_high": _text(one.since_high),
        "sentence": cause_words(finding) if one.since else "",
        "advice": [{"text": part.text, "evidence": part.evidence} for part in advice],
    }


def _text(at: datetime | None) -> str | None:
    return at.isoformat() if at else None

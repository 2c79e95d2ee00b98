"""The subject of a report: the verdict, in one line."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from diagnostics.core.mail_headers import clean_subject
from diagnostics.core.reports.document import Document
from diagnostics.core.reports.judging import (
    Standing,
    change_of,
    share_of,
    standing_of,
    worst_first,
)
from diagnostics.core.series import MINIMUM_RUNS
from diagnostics.core.wording import percent, plural, points

CADENCE_WORDS = {"weekdays": "daily"}
WEEK = timedelta(days=7)
LONGEST_TITLE = 60
LONGEST_MODEL = 48


def subject_of(document: Document) -> str:
    """Write the subject: what, how often, how bad, which model, since when."""
    word = CADENCE_WORDS.get(document.cadence, document.cadence)
    return clean_subject(f"{document.title[:LONGEST_TITLE]} {word}: {_verdict(document)}")


def moment_of(at: datetime, document: Document) -> str:
    """Write a time of the period in its zone: `Thu 14:30`, or `12 Nov 14:30` of long ones."""
    local = at.astimezone(ZoneInfo(document.zone))
    if document.until - at <= WEEK:
        return f"{local:%a %H:%M}"
    return f"{local.day} {local:%b %H:%M}"


def _verdict(document: Document) -> str:
    total = document.total
    if not total.runs:
        return "no runs"
    if total.runs < MINIMUM_RUNS:
        return f"{plural(total.runs, 'run')}, too few to judge"
    share = percent(share_of(total.degraded, total.runs))
    change = change_of(total)
    against = "" if change is None else f" ({points(change)})"
    return f"degraded {share}{against}, {_whose(document)}"


def _whose(document: Document) -> str:
    begun = document.degradation
    if begun:
        name = begun.subject.rpartition("/")[2] or begun.subject
        return f"{name[:LONGEST_MODEL]} since {moment_of(begun.since, document)}"
    worst = worst_first(document.models)[0]
    name = worst.name.rpartition("/")[2][:LONGEST_MODEL]
    match standing_of(worst):
        case Standing.DEGRADING:
            return f"worst {name}"
        case Standing.WATCH:
            return f"watch {name}"
    judged = [m for m in document.models if standing_of(m) is Standing.OK]
    if not judged:
        return "no model with enough runs"
    return (
        f"{judged[0].name.rpartition('/')[2][:LONGEST_MODEL]} within baseline"
        if len(judged) == 1
        else f"all {len(judged)} models within baseline"
    )

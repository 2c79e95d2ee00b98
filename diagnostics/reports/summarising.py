"""A period of a project as a document: what a report says, before it is worded."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from django.http import QueryDict
from django.urls import NoReverseMatch, reverse

from diagnostics.core.reports.document import (
    LONGEST_TEXT,
    AdviceFigures,
    Degradation,
    Document,
    name_of,
)
from diagnostics.core.reports.periods import Period
from diagnostics.core.reports.sparks import slot_width
from diagnostics.core.selection import Selection, read_selection
from diagnostics.core.verdict.advising import Advice
from diagnostics.core.verdict.suspects import Cause
from diagnostics.core.verdict.telling import CAUSE_WORDS
from diagnostics.core.wording import plural
from diagnostics.models import Project
from diagnostics.reports.reading import (
    Asked,
    ModelKey,
    add_up,
    read_groups,
    read_incidents,
    read_models,
    read_quality,
)
from diagnostics.verdicts.judging import Verdict, verdict_of

MOST_ADVICE = 3
MARGIN = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Subject:
    """What a report is about, whoever reads it: equal ones are made once."""

    project: Project
    title: str
    query: str
    cadence: str
    period: Period


def summarise(subject: Subject, now: datetime) -> Document:
    """Read what is to be said of a period; the number of statements is constant."""
    period, project = subject.period, subject.project
    selection = _selection(subject)
    asked = Asked(
        project.pk,
        period.since,
        period.until,
        period.before().since,
        selection.rollup_terms,
        now,
    )
    models = read_models(asked, lambda key: _model_url(selection, key))
    groups, more = read_groups(asked, _address)
    verdict = verdict_of(project.pk, selection, now)
    page = f"{_address('now')}?{selection.query()}"
    return Document(
        project=name_of(project.name),
        title=name_of(subject.title),
        cadence=subject.cadence,
        zone=period.zone.key,
        since=period.since,
        until=period.until,
        first=period.first,
        last=period.last,
        slot_seconds=int(slot_width(period.until - period.since).total_seconds()),
        url=page,
        total=add_up(models, page),
        models=models,
        degradation=_degradation(verdict),
        groups=groups,
        more_groups=more,
        advice=_advice(verdict.advice, f"{_address('failures')}?{selection.query()}"),
        incidents=read_incidents(asked, _address("incidents")),
        quality=read_quality(asked, _address("ingest")),
        remarks=_remarks(selection),
    )


def _selection(subject: Subject) -> Selection:
    """Read the view's filters; its range gives way to the period."""
    asked = QueryDict(subject.query).dict()
    filters = {name: str(value) for name, value in asked.items()}
    period = subject.period
    return replace(
        read_selection(filters),
        begin=period.since.astimezone(UTC),
        end=period.until.astimezone(UTC),
        zone=period.zone.key,
    )


def _degradation(verdict: Verdict) -> Degradation | None:
    rate, finding = verdict.rate, verdict.finding
    if verdict.state != "degrading" or verdict.since is None or rate is None:
        return None
    return Degradation(
        subject=_hit(verdict),
        since=verdict.since,
        bad=rate.bad,
        total=rate.total,
        noun=rate.noun,
        baseline=rate.baseline,
        kind=finding.top_kind or "",
        cause=_cause(verdict),
    )


def _hit(verdict: Verdict) -> str:
    finding, who = verdict.finding, verdict.who
    if finding.cause in (Cause.MODEL, Cause.PROVIDER_OUTAGE):
        return name_of(finding.value)
    if who is not None and who.model:
        return name_of(f"{who.provider}/{who.model}" if who.provider else who.model)
    return plural(finding.models, "model")


def _cause(verdict: Verdict) -> str:
    finding = verdict.finding
    if finding.cause is None or finding.cause not in CAUSE_WORDS:
        return "There is not enough data to say why."
    words = CAUSE_WORDS[finding.cause]
    if finding.cause in (Cause.PROMPT, Cause.SCHEMA, Cause.RELEASE):
        return f"{words}: {name_of(finding.value)}."
    return f"{words}."


def _advice(advice: Sequence[Advice], url: str) -> list[AdviceFigures]:
    return [
        AdviceFigures(
            text=name_of(one.text, LONGEST_TEXT),
            evidence=name_of(one.evidence, LONGEST_TEXT),
            url=url,
        )
        for one in advice[:MOST_ADVICE]
    ]


def _remarks(selection: Selection) -> list[str]:
    if not selection.needs_events and not any(
        term.field in ("kind", "outcome") for term in selection.terms
    ):
        return []
    return [
        "The view has filters on single events or kinds; figures here are of all runs "
        "that its other filters keep."
    ]


def _model_url(selection: Selection, key: ModelKey) -> str:
    provider, model = key
    query = selection.narrowed_to(provider=provider, model=model)
    return f"{_address('now')}?{query}"


def _address(name: str, *args: object) -> str:
    """Give the path of a page; a part that is not installed leads to the first page."""
    try:
        return reverse(name, args=args)
    except NoReverseMatch:
        return "/"

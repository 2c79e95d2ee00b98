"""A document in words: what the HTML part, the text part and the page all show.

Both parts of a mail are made from these lines alone, so they cannot say different things.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from diagnostics.analysis.series import MINIMUM_RUNS
from diagnostics.analysis.statistics import wilson_interval
from diagnostics.figures import count, duration, listed, percent, plural, points, short_count
from diagnostics.reports.document import (
    BAD,
    IncidentFigures,
    ModelFigures,
    ModelStatus,
    QualityFigures,
    ReportDocument,
    change_of,
    moment_of,
    share_of,
    standing_of,
    subject_of,
    worst_first,
)
from diagnostics.store.windows import RunBucket

BLOCKS = "▁▂▃▄▅▆▇█"
EMPTY = "·"
LEAST_TOP = 0.05
MOST_SLOTS = 31
WIDTHS = tuple(timedelta(hours=hours) for hours in (1, 2, 3, 6, 12, 24, 48, 168))


def sparkline(buckets: Sequence[RunBucket]) -> str:
    """Draw the degraded share of each bucket; a middle dot where nothing ran.

    The highest block is the largest share, 5 % at least: noise must not look like trouble.
    """
    top = max(LEAST_TOP, max((bucket.share for bucket in buckets), default=0.0))
    return "".join(_block(bucket, top) for bucket in buckets)


def slot_width(span: timedelta) -> timedelta:
    """Return the smallest width that cuts a period into at most 31 slots."""
    fitting = (width for width in WIDTHS if span <= MOST_SLOTS * width)
    return next(fitting, WIDTHS[-1])


def slot_count(span: timedelta) -> int:
    """Return how many slots a period has; the last is longer or shorter on a change of clocks."""
    return min(max(round(span / slot_width(span)), 1), MOST_SLOTS)


def _block(bucket: RunBucket, top: float) -> str:
    if not bucket.runs:
        return EMPTY
    return BLOCKS[min(int(bucket.share / top * len(BLOCKS)), len(BLOCKS) - 1)]


MOST_ENTRIES = 8
MOST_NAMED = 6
# Posted outcomes do not say which kind of failure it was.
UNSAID = "other_invalid"
TONES = {
    ModelStatus.DEGRADING: "bad",
    ModelStatus.WATCH: "warn",
    ModelStatus.OK: "good",
    ModelStatus.FEW: "quiet",
}


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """One model, or all together, in labelled figures."""

    name: str
    tone: str
    state: str
    facts: Sequence[tuple[str, str]]
    spark: str
    peak: str
    url: str


@dataclass(frozen=True, slots=True)
class ReportLine:
    """One thing that is told, what stands behind it, and where to look."""

    text: str
    beside: str
    url: str


@dataclass(frozen=True, slots=True)
class Letter:
    """A report, ready to be laid out; addresses are paths."""

    subject: str
    title: str
    project: str
    period: str
    tone: str
    lead: str
    verdict: str
    url: str
    total: ModelEntry
    models: Sequence[ModelEntry]
    folded: Sequence[str]
    groups: Sequence[ReportLine]
    groups_more: str
    advice: Sequence[ReportLine]
    incidents: Sequence[str]
    incidents_url: str
    quality: Sequence[str]
    quality_url: str
    remarks: Sequence[str]


def write_letter(document: ReportDocument) -> Letter:
    """Put a document into words."""
    ranked = worst_first(document.models)
    bad = [model for model in ranked if standing_of(model) in BAD]
    lead, rest = _verdict(document, bad)
    return Letter(
        subject=subject_of(document),
        title=document.title,
        project=document.project,
        period=_period(document),
        tone=_tone(document, bad),
        lead=lead,
        verdict=rest,
        url=document.url,
        total=_entry(document.total, document, "All models"),
        models=[_entry(model, document) for model in bad[:MOST_ENTRIES]],
        folded=_folded(ranked, bad),
        groups=[
            ReportLine(
                f"{group.state.capitalize()}: {group.text}",
                _seen(group.seen),
                group.url,
            )
            for group in document.groups
        ],
        groups_more=_more(document.more_groups),
        advice=[ReportLine(one.text, one.evidence, one.url) for one in document.advice],
        incidents=_incidents(document.incidents),
        incidents_url=document.incidents.url if document.incidents else "",
        quality=_quality(document.quality),
        quality_url=document.quality.url,
        remarks=document.remarks,
    )


def _period(document: ReportDocument) -> str:
    first, last = document.first, document.last
    days = f"{first:%a} {first.day} {first:%b %Y}"
    if last != first:
        days += f" to {last:%a} {last.day} {last:%b %Y}"
    hours = round((document.until - document.since).total_seconds() / 3600)
    whole = ((last - first).days + 1) * 24
    odd = f" ({hours} hours: the clocks changed)" if hours != whole else ""
    return f"{days}{odd}, {document.zone}"


def _tone(document: ReportDocument, bad: Sequence[ModelFigures]) -> str:
    if document.degradation or any(standing_of(model) is ModelStatus.DEGRADING for model in bad):
        return "bad"
    if bad:
        return "warn"
    return "good" if document.total.runs >= MINIMUM_RUNS else "quiet"


def _verdict(document: ReportDocument, bad: Sequence[ModelFigures]) -> tuple[str, str]:
    """Return the lead, and what stands behind it."""
    begun, total = document.degradation, document.total
    if begun:
        is_told = begun.kind not in ("", UNSAID)
        usual = (
            "no baseline yet" if begun.baseline is None else f"baseline {percent(begun.baseline)}"
        )
        mostly = f", mostly {begun.kind.replace('_', ' ')}" if is_told else ""
        share = percent(share_of(begun.bad, begun.total))
        return (
            f"Degrading since {moment_of(begun.since, document)}:",
            f"{begun.subject}, {share} of {plural(begun.total, begun.noun)} ({usual}){mostly}. "
            f"{begun.cause}".strip(),
        )
    if not total.runs:
        return "No run ended in this period.", ""
    if bad:
        share = percent(share_of(bad[0].degraded, bad[0].runs))
        more = f", and {plural(len(bad) - 1, 'other model')}" if len(bad) > 1 else ""
        against = "above its baseline" if bad[0].runs_usual else "new and to be watched"
        runs = plural(bad[0].runs, "run")
        return f"{bad[0].name} is {against}:", f"{share} of {runs} degraded{more}."
    judged = sum(standing_of(model) is ModelStatus.OK for model in document.models)
    if not judged:
        return "Too few runs to judge:", f"a model is judged from {MINIMUM_RUNS} runs on."
    if judged == 1:
        return "The model is within its baseline.", ""
    return f"All {judged} models are within their baselines.", ""


def _entry(model: ModelFigures, document: ReportDocument, name: str = "") -> ModelEntry:
    standing = standing_of(model)
    buckets = [RunBucket(*pair) for pair in model.curve]
    return ModelEntry(
        name=name or model.name,
        tone="" if name else TONES[standing],
        state="" if name else standing.value,
        facts=_facts(model, document),
        spark=sparkline(buckets) if any(b.runs for b in buckets) else "",
        peak=_peak(buckets, document),
        url=model.url,
    )


def _facts(model: ModelFigures, document: ReportDocument) -> list[tuple[str, str]]:
    if not model.runs:
        return [("runs", "0"), ("before", plural(model.runs_before, "run"))]
    low, high = wilson_interval(model.degraded, model.runs)
    share = percent(share_of(model.degraded, model.runs))
    failed_first = model.runs - model.ok_first
    usual = share_of(model.degraded_usual, model.runs_usual)
    days = plural((document.last - document.first).days + 1, "day")
    return [
        ("runs", count(model.runs)),
        ("degraded", share),
        ("95 % interval", f"{percent(low)} to {percent(high)}"),
        (f"against the {days} before", points(change_of(model))),
        ("baseline", percent(usual)),
        ("first answer good", percent(share_of(model.ok_first, model.runs))),
        ("of the others repaired", percent(share_of(model.repaired, failed_first))),
        ("tokens for retries", short_count(model.retry_tokens)),
        ("time for retries", duration(model.retry_ms / 1000)),
    ]


def _peak(buckets: Sequence[RunBucket], document: ReportDocument) -> str:
    worst = max(range(len(buckets)), key=lambda at: buckets[at].share, default=None)
    if worst is None or not buckets[worst].degraded:
        return ""
    begun = document.since + worst * timedelta(seconds=document.slot_seconds)
    return f"peak {percent(buckets[worst].share, 0)} {moment_of(begun, document)}"


def _folded(ranked: Sequence[ModelFigures], bad: Sequence[ModelFigures]) -> list[str]:
    calm = [model for model in ranked if standing_of(model) is ModelStatus.OK]
    few = [model for model in ranked if standing_of(model) is ModelStatus.FEW]
    rest = bad[MOST_ENTRIES:]
    told = []
    if rest:
        told.append(f"{len(rest)} more above their baseline: {_named(rest)}.")
    if calm:
        told.append(
            f"Within baseline over the whole period, {plural(len(calm), 'model')}: {_named(calm)}."
        )
    if few:
        told.append(f"Fewer than {MINIMUM_RUNS} runs, {plural(len(few), 'model')}: {_named(few)}.")
    return told


def _named(models: Sequence[ModelFigures]) -> str:
    named = [
        f"{model.name} ({percent(share_of(model.degraded, model.runs))} of {count(model.runs)})"
        for model in models
    ]
    return listed(named, MOST_NAMED)


def _more(number: int) -> str:
    return f"And {plural(number, 'more kind', 'more kinds')}." if number else ""


def _seen(times: int) -> str:
    return f"seen {plural(times, 'time')} in the period" if times else ""


def _incidents(found: IncidentFigures | None) -> list[str]:
    if found is None:
        return []
    if not found.count:
        return ["No incident."]
    told = [f"{plural(found.count, 'incident')}, {count(found.open)} still open."]
    if found.acknowledge_seconds is not None:
        told.append(
            f"Acknowledged: {count(found.acknowledged)}, "
            f"half of them within {duration(found.acknowledge_seconds)}."
        )
    if found.clear_seconds is not None:
        told.append(f"Cleared: half of them within {duration(found.clear_seconds)}.")
    if found.judged:
        noise = percent(share_of(found.false_alarms, found.judged), 0)
        told.append(f"Noise: {noise} of {count(found.judged)} judged were false alarms.")
    return told


def _quality(found: QualityFigures) -> list[str]:
    told = [
        f"{plural(found.events, 'event')} counted, {count(found.rejected)} rejected, "
        f"{count(found.duplicates)} duplicates."
    ]
    if found.silent:
        silent = listed(found.silent, MOST_NAMED)
        told.append(f"Silent: {silent} sent before and nothing on the last day.")
    if found.without_successes:
        mute = listed(found.without_successes, MOST_NAMED)
        told.append(
            f"No denominator: {mute} never told of a success, "
            "so the shares of their calls mean little."
        )
    elif found.sources:
        every = (
            f"all {count(found.sources)} sources tell"
            if found.sources > 1
            else "the one source tells"
        )
        told.append(f"Denominators: {every} of successes too.")
    return told

"""A document in words: what the HTML part, the text part and the page all show.

Both parts of a mail are made from these lines alone, so they cannot say different things.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from diagnostics.analysis.statistics import LEAST_TRIALS, wilson_interval
from diagnostics.analysis.status import SeriesState
from diagnostics.figures import (
    count,
    duration,
    listed,
    percent,
    plural,
    points,
    rate_percent,
    short_count,
)
from diagnostics.outbound.mail_headers import clean_subject
from diagnostics.queries.call_counts import UNSAID
from diagnostics.reports.document import (
    BAD,
    Degradation,
    IncidentFigures,
    ModelFigures,
    QualityFigures,
    ReportDocument,
    change_of,
    share_of,
    standing_of,
    worst_first,
)
from diagnostics.store.windows import RunBucket
from diagnostics.verdict.wording import state_words

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


CADENCE_WORDS = {"weekdays": "daily"}
WEEK = timedelta(days=7)
LONGEST_TITLE = 60
LONGEST_MODEL = 48


def subject_of(document: ReportDocument) -> str:
    """Write the subject: what, how often, how bad, which model, since when."""
    word = CADENCE_WORDS.get(document.cadence, document.cadence)
    return clean_subject(f"{document.title[:LONGEST_TITLE]} {word}: {_short_verdict(document)}")


def moment_of(at: datetime, document: ReportDocument) -> str:
    """Write a time of the period in its zone: `Thu 14:30`, or `12 Nov 14:30` of long ones."""
    local = at.astimezone(ZoneInfo(document.zone))
    if document.until - at <= WEEK:
        return f"{local:%a %H:%M}"
    return f"{local.day} {local:%b %H:%M}"


def _short_verdict(document: ReportDocument) -> str:
    total = document.total
    if not total.runs:
        return "no runs"
    if total.runs < LEAST_TRIALS:
        return f"{plural(total.runs, 'run')}, too few to judge"
    share = percent(share_of(total.degraded, total.runs))
    change = change_of(total)
    against = "" if change is None else f" ({points(change)})"
    return f"degraded {share}{against}, {_whose(document)}"


def _whose(document: ReportDocument) -> str:
    begun = document.degradation
    if begun:
        name = begun.subject.rpartition("/")[2] or begun.subject
        return f"{name[:LONGEST_MODEL]} since {moment_of(begun.since, document)}"
    worst = worst_first(document.models)[0]
    name = worst.name.rpartition("/")[2][:LONGEST_MODEL]
    match standing_of(worst):
        case SeriesState.DEGRADING:
            return f"worst {name}"
        case SeriesState.WATCH:
            return f"watch {name}"
    judged = [m for m in document.models if standing_of(m) is SeriesState.OK]
    if not judged:
        return "no model with enough runs"
    return (
        f"{judged[0].name.rpartition('/')[2][:LONGEST_MODEL]} within baseline"
        if len(judged) == 1
        else f"all {len(judged)} models within baseline"
    )


MOST_ENTRIES = 8
MOST_NAMED = 6
TONES = {
    SeriesState.DEGRADING: "bad",
    SeriesState.WATCH: "warn",
    SeriesState.OK: "good",
    SeriesState.LOW_VOLUME: "quiet",
    SeriesState.NO_DATA: "quiet",
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
class Letter:
    """A report, ready to be laid out; addresses are paths.

    What needs no words of ours is shown from the document. Each of `groups` says what
    failed, how often, and where to look.
    """

    document: ReportDocument
    subject: str
    period: str
    tone: str
    lead: str
    verdict: str
    others: Sequence[str]
    total: ModelEntry
    models: Sequence[ModelEntry]
    folded: Sequence[str]
    groups: Sequence[tuple[str, str, str]]
    groups_more: str
    incidents: Sequence[str]
    quality: Sequence[str]


def write_letter(document: ReportDocument) -> Letter:
    """Put a document into words."""
    ranked = worst_first(document.models)
    bad = [model for model in ranked if standing_of(model) in BAD]
    lead, rest = _verdict(document, bad)
    more = plural(document.more_groups, "more kind", "more kinds")
    return Letter(
        document=document,
        subject=subject_of(document),
        period=_period(document),
        tone=_tone(document, bad),
        lead=lead,
        verdict=rest,
        others=[" ".join(_degradation(other, document)) for other in document.others],
        total=_entry(document.total, document, "All models"),
        models=[_entry(model, document) for model in bad[:MOST_ENTRIES]],
        folded=_folded(ranked, bad),
        groups=[
            (
                f"{group.state.capitalize()}: {group.text}",
                f"seen {plural(group.seen, 'time')} in the period" if group.seen else "",
                group.url,
            )
            for group in document.groups
        ],
        groups_more=f"And {more}." if document.more_groups else "",
        incidents=_incidents(document.incidents),
        quality=_quality(document.quality),
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
    if document.degradation or any(standing_of(model) is SeriesState.DEGRADING for model in bad):
        return "bad"
    if bad:
        return "warn"
    return "good" if document.total.runs >= LEAST_TRIALS else "quiet"


def _verdict(document: ReportDocument, bad: Sequence[ModelFigures]) -> tuple[str, str]:
    """Return the lead, and what stands behind it."""
    total = document.total
    if document.degradation:
        return _degradation(document.degradation, document)
    if not total.runs:
        return "No run ended in this period.", ""
    if bad:
        share = percent(share_of(bad[0].degraded, bad[0].runs))
        more = f", and {plural(len(bad) - 1, 'other model')}" if len(bad) > 1 else ""
        against = "above its baseline" if bad[0].runs_usual else "new and to be watched"
        runs = plural(bad[0].runs, "run")
        return f"{bad[0].name} is {against}:", f"{share} of {runs} degraded{more}."
    judged = sum(standing_of(model) is SeriesState.OK for model in document.models)
    if not judged:
        return "Too few runs to judge:", f"a model is judged from {LEAST_TRIALS} runs on."
    if judged == 1:
        return "The model is within its baseline.", ""
    return f"All {judged} models are within their baselines.", ""


def _degradation(begun: Degradation, document: ReportDocument) -> tuple[str, str]:
    is_told = begun.kind not in ("", UNSAID)
    usual = (
        "no baseline yet" if begun.baseline is None else f"baseline {rate_percent(begun.baseline)}"
    )
    mostly = f", mostly {begun.kind.replace('_', ' ')}" if is_told else ""
    share = rate_percent(share_of(begun.bad, begun.total))
    return (
        f"Degrading since {moment_of(begun.since, document)}:",
        f"{begun.subject}, {share} of {plural(begun.total, begun.noun)} ({usual}){mostly}. "
        f"{begun.cause}".strip(),
    )


def _entry(model: ModelFigures, document: ReportDocument, name: str = "") -> ModelEntry:
    standing = standing_of(model)
    buckets = [RunBucket(*pair) for pair in model.curve]
    return ModelEntry(
        name=name or model.name,
        tone="" if name else TONES[standing],
        state="" if name else state_words(standing),
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
    calm = [model for model in ranked if standing_of(model) is SeriesState.OK]
    few = [m for m in ranked if standing_of(m) in (SeriesState.LOW_VOLUME, SeriesState.NO_DATA)]
    rest = bad[MOST_ENTRIES:]
    told = []
    if rest:
        told.append(f"{len(rest)} more above their baseline: {_named(rest)}.")
    if calm:
        told.append(
            f"Within baseline over the whole period, {plural(len(calm), 'model')}: {_named(calm)}."
        )
    if few:
        told.append(f"Fewer than {LEAST_TRIALS} runs, {plural(len(few), 'model')}: {_named(few)}.")
    return told


def _named(models: Sequence[ModelFigures]) -> str:
    named = [
        f"{model.name} ({percent(share_of(model.degraded, model.runs))} of {count(model.runs)})"
        for model in models
    ]
    return listed(named, MOST_NAMED)


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
        is_one = found.sources == 1
        every = "the one source tells" if is_one else f"all {count(found.sources)} sources tell"
        told.append(f"Denominators: {every} of successes too.")
    return told

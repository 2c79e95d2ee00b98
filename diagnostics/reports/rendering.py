"""A document in words: what the HTML part, the text part and the page all show.

Both parts of a mail are made from these lines alone, so they cannot say different things.
"""

from base64 import b64encode
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
    write_usd,
)
from diagnostics.outbound.mail_headers import clean_subject
from diagnostics.queries.call_counts import UNSAID
from diagnostics.reports.curves import draw_curve
from diagnostics.reports.document import (
    BAD,
    Degradation,
    IncidentFigures,
    IncidentInPeriod,
    ModelFigures,
    QualityFigures,
    ReportDocument,
    change_of,
    share_of,
    standing_of,
    worst_first,
)
from diagnostics.store.windows import RunBucket
from diagnostics.verdict.wording import SERIES_TONES, state_words

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
    """Write a time in the report's zone: `Thu 14:30 Europe/Berlin`, or `12 Nov 14:30 …`."""
    local = at.astimezone(ZoneInfo(document.zone))
    day = f"{local:%a}" if document.until - at <= WEEK else f"{local.day} {local:%b}"
    return f"{day} {local:%H:%M} {document.zone}"


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


MOST_ROWS = 20
MOST_CURVES = 4
MOST_NAMED = 6


@dataclass(frozen=True, slots=True)
class ModelEntry:
    """One model, or all together, as a row of figures."""

    name: str
    tone: str
    state: str
    figures: Sequence[str]
    url: str

    @property
    def facts(self) -> Sequence[tuple[str, str]]:
        """Its figures with their labels."""
        return list(zip(COLUMNS, self.figures, strict=True))


@dataclass(frozen=True, slots=True)
class Curve:
    """How one model did over the period: a picture, its text, and the same as text bars."""

    cid: str
    name: str
    url: str
    text: str
    facts: str
    spark: str
    shares: Sequence[float | None]
    baseline: float | None
    bad_from: int | None

    @property
    def picture(self) -> bytes:
        """The curve as PNG."""
        return draw_curve(self.shares, self.baseline, self.bad_from)

    @property
    def data_uri(self) -> str:
        """The picture for a page."""
        return f"data:image/png;base64,{b64encode(self.picture).decode()}"


@dataclass(frozen=True, slots=True)
class Letter:
    """A report, ready to be laid out; addresses are paths.

    What needs no words of ours is shown from the document. Each of `groups` says what
    failed, how often, and where to look; each of `incidents` what it was, the rest, and where.
    """

    document: ReportDocument
    subject: str
    period: str
    tone: str
    lead: str
    verdict: str
    others: Sequence[tuple[str, str]]
    curves: Sequence[Curve]
    columns: Sequence[str]
    total: ModelEntry
    models: Sequence[ModelEntry]
    folded: Sequence[str]
    retries: str
    groups: Sequence[tuple[str, str, str]]
    groups_more: str
    incidents: Sequence[tuple[str, str, str]]
    incident_figures: Sequence[str]
    quality: Sequence[str]


def write_letter(document: ReportDocument) -> Letter:
    """Put a document into words."""
    ranked = worst_first(document.models)
    bad = [model for model in ranked if standing_of(model) in BAD]
    lead, rest = _verdict(document, bad)
    more = plural(document.more_groups, "more failure")
    found = document.incidents
    return Letter(
        document=document,
        subject=subject_of(document),
        period=_period(document),
        tone=_tone(document, bad),
        lead=lead,
        verdict=rest,
        others=[_degradation(other, document) for other in document.others],
        curves=[_curve(place, model, document) for place, model in enumerate(_drawn(bad), 1)],
        columns=COLUMNS,
        total=_entry(document.total, "All models"),
        models=[_entry(model) for model in ranked[:MOST_ROWS]],
        folded=_folded(ranked[MOST_ROWS:]),
        retries=_retries(document.total),
        groups=[
            (
                f"{group.state.capitalize()}: {group.text}",
                f"{plural(group.seen, 'time')} in the period" if group.seen else "",
                group.url,
            )
            for group in document.groups
        ],
        groups_more=f"+{more}" if document.more_groups else "",
        incidents=[_incident(one, document) for one in found.entries] if found else [],
        incident_figures=_incident_figures(found),
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


COLUMNS = ("Runs", "Degraded", "Change", "First pass", "Retries")


def _entry(model: ModelFigures, name: str = "") -> ModelEntry:
    standing = standing_of(model)
    state = state_words(standing)
    if model.incidents:
        state = f"{state} · {plural(model.incidents, 'incident')}"
    return ModelEntry(
        name=name or model.name,
        tone="" if name else SERIES_TONES[standing],
        state="" if name else state,
        figures=(
            count(model.runs),
            percent(share_of(model.degraded, model.runs)),
            points(change_of(model)),
            percent(share_of(model.ok_first, model.runs)),
            _money(model) or f"{short_count(model.retry_tokens)} tok",
        ),
        url=model.url,
    )


def _money(model: ModelFigures) -> str:
    return "" if model.retry_usd is None else write_usd(model.retry_usd)


def _retries(total: ModelFigures) -> str:
    """Say what retries took: money, as far as prices are known, tokens and time."""
    if not total.retry_tokens and not total.retry_ms:
        return "No retries."
    money = _money(total)
    cost = f"{money}, " if money else ""
    took = f"{short_count(total.retry_tokens)} tokens and {duration(total.retry_ms / 1000)}"
    unknown = "" if money else " No prices are known."
    return f"Spent on retries: {cost}{took}.{unknown}"


def _drawn(bad: Sequence[ModelFigures]) -> Sequence[ModelFigures]:
    """Return the models that have a curve: those that degrade, few enough for one mail."""
    degrading = [one for one in bad if standing_of(one) is SeriesState.DEGRADING]
    return [one for one in degrading if any(runs for runs, _ in one.curve)][:MOST_CURVES]


def _curve(place: int, model: ModelFigures, document: ReportDocument) -> Curve:
    buckets = [RunBucket(*pair) for pair in model.curve]
    baseline = share_of(model.degraded_usual, model.runs_usual)
    low, high = wilson_interval(model.degraded, model.runs)
    failed_first = model.runs - model.ok_first
    repaired = share_of(model.repaired, failed_first)
    slot = duration(timedelta(seconds=document.slot_seconds))
    return Curve(
        cid=f"curve-{place}@failsoft",
        name=model.name,
        url=model.url,
        text=f"Share of degraded runs every {slot}, {_peak(buckets, document)}"
        f", baseline {percent(baseline)}",
        facts=f"95 % interval {percent(low)} to {percent(high)}, repair rate {percent(repaired)}",
        spark=sparkline(buckets),
        shares=[bucket.share if bucket.runs else None for bucket in buckets],
        baseline=baseline,
        bad_from=_bad_from(model, document),
    )


def _bad_from(model: ModelFigures, document: ReportDocument) -> int | None:
    """Return the slot of the onset; the first, where it lies before the period."""
    if model.since is None:
        return None
    gone = max(model.since - document.since, timedelta())
    return int(gone.total_seconds() // document.slot_seconds)


def _peak(buckets: Sequence[RunBucket], document: ReportDocument) -> str:
    worst = max(range(len(buckets)), key=lambda at: buckets[at].share)
    begun = document.since + worst * timedelta(seconds=document.slot_seconds)
    return f"peak {percent(buckets[worst].share, 0)} {moment_of(begun, document)}"


def _folded(rest: Sequence[ModelFigures]) -> list[str]:
    """Return what the table has no row for, by how it stands."""
    few = (SeriesState.LOW_VOLUME, SeriesState.NO_DATA)
    bad = [m for m in rest if standing_of(m) in BAD or m.incidents]
    calm = [m for m in rest if m not in bad and standing_of(m) is SeriesState.OK]
    thin = [m for m in rest if m not in bad and standing_of(m) in few]
    lines = (
        (bad, "above baseline or with an incident"),
        (calm, "within baseline over the whole period"),
        (thin, f"with fewer than {LEAST_TRIALS} runs"),
    )
    return [
        f"{plural(len(models), 'more model')} {words}: {_named(models)}."
        for models, words in lines
        if models
    ]


def _named(models: Sequence[ModelFigures]) -> str:
    named = [
        f"{model.name} ({percent(share_of(model.degraded, model.runs))} of {count(model.runs)})"
        for model in models
    ]
    return listed(named, MOST_NAMED)


def _incident(one: IncidentInPeriod, document: ReportDocument) -> tuple[str, str, str]:
    since = moment_of(one.onset, document)
    if one.ended_at is None:
        end = "open"
    else:
        lasted = duration(one.ended_at - one.onset)
        end = f"resolved {one.ending} {moment_of(one.ended_at, document)}, after {lasted}"
    return (
        f"{one.title} · {one.severity}",
        f"{one.cause[:1].upper()}{one.cause[1:].rstrip('.')}. Since {since}, {end}.",
        one.url,
    )


def _incident_figures(found: IncidentFigures | None) -> list[str]:
    if found is None:
        return []
    if not found.count:
        return ["No incidents."]
    told = [f"{plural(found.count, 'incident')}, {count(found.open)} open."]
    if found.acknowledge_seconds is not None:
        told.append(
            f"{count(found.acknowledged)} acknowledged, "
            f"median time {duration(found.acknowledge_seconds)}."
        )
    if found.clear_seconds is not None:
        told.append(f"Median time to clear: {duration(found.clear_seconds)}.")
    if found.judged:
        noise = percent(share_of(found.false_alarms, found.judged), 0)
        told.append(f"False alarms: {noise} of {count(found.judged)} resolved with a cause.")
    return told


def _quality(found: QualityFigures) -> list[str]:
    told = [
        f"{plural(found.events, 'event')}, {count(found.rejected)} rejected, "
        f"{plural(found.duplicates, 'duplicate')}."
    ]
    if found.silent:
        silent = listed(found.silent, MOST_NAMED)
        told.append(f"Silent sources: {silent}, nothing on the last day.")
    if found.without_successes:
        mute = listed(found.without_successes, MOST_NAMED)
        told.append(f"No successes reported by {mute}: failure rates of calls are not meaningful.")
    elif found.sources:
        reports = {1: "The source reports", 2: "Both sources report"}
        told.append(
            f"{reports.get(found.sources, f'All {found.sources} sources report')} successes."
        )
    return told

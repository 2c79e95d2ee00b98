"""A document in words, for the HTML part, the text part and the page.

Both parts of a mail use only these lines, so that they cannot differ.
"""

from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from diagnostics.analysis.series import SeriesState
from diagnostics.analysis.statistics import LEAST_TRIALS, wilson_interval
from diagnostics.figures import (
    all_of,
    count,
    duration,
    listed,
    percent,
    plural,
    points,
    short_count,
    write_usd,
)
from diagnostics.outbound.mail_headers import clean_subject
from diagnostics.reports.curves import draw_curve, sparkline
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
    status_of,
    worst_first,
)
from diagnostics.store.windows import RunBucket
from diagnostics.verdict.wording import SERIES_TONES, VerdictRate, state_words

CADENCE_WORDS = {"weekdays": "daily"}
WEEK, HOUR = timedelta(days=7), timedelta(hours=1)
LONGEST_TITLE = 60
LONGEST_MODEL = 48


def subject_of(document: ReportDocument) -> str:
    word = CADENCE_WORDS.get(document.cadence, document.cadence)
    return clean_subject(f"{document.title[:LONGEST_TITLE]} {word}: {_short_verdict(document)}")


def moment_of(at: datetime, document: ReportDocument) -> str:
    """Return a time in the report's zone: `Thu 14:30 Europe/Berlin`, or `12 Nov 14:30 …`."""
    local = at.astimezone(ZoneInfo(document.zone))
    is_near = document.until - WEEK <= at <= document.until
    day = f"{local:%a}" if is_near else f"{local.day} {local:%b}"
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
    started = document.degradation
    if started:
        # Of a model without its provider; other causes are named whole.
        name = started.subject
        name = name if " " in name else name.rpartition("/")[2]
        return f"{name[:LONGEST_MODEL]} since {moment_of(started.since, document)}"
    worst = worst_first(document.models)[0]
    name = worst.name.rpartition("/")[2][:LONGEST_MODEL]
    match status_of(worst):
        case SeriesState.DEGRADING:
            return f"worst {name}"
        case SeriesState.WATCH:
            return f"watch {name}"
    judged = [m for m in document.models if status_of(m) is SeriesState.OK]
    if not judged:
        return "no model with enough runs"
    if not _have_past(judged):
        return "no baseline yet"
    return (
        f"{judged[0].name.rpartition('/')[2][:LONGEST_MODEL]} within baseline"
        if len(judged) == 1
        else f"{_judged_of(document, len(judged))} models within baseline"
    )


COLUMNS: Mapping[str, Callable[[ModelFigures], str]] = {
    "Runs": lambda model: count(model.runs),
    "Degraded": lambda model: percent(share_of(model.degraded, model.runs)),
    "Change": lambda model: points(change_of(model)),
    "Failed calls": lambda model: percent(share_of(model.calls_failed, model.calls)),
    "First pass": lambda model: percent(share_of(model.ok_first, model.checked)),
    "Retry cost": lambda model: _money(model) or f"{short_count(model.retry_tokens)} tok",
}
MOST_ROWS = 20
MOST_CURVES = 4
MOST_NAMED = 6
REMAINING: Mapping[SeriesState, str] = {
    **dict.fromkeys(BAD, "above baseline or with an incident"),
    SeriesState.OK: "within baseline over the whole period",
    SeriesState.LOW_VOLUME: f"with fewer than {LEAST_TRIALS} runs",
    SeriesState.NO_DATA: f"with fewer than {LEAST_TRIALS} runs",
    SeriesState.NOT_JUDGED: "not judged",
}
"""What is said of the models beyond the table, in this order."""


@dataclass(frozen=True, slots=True)
class ModelEntry:
    name: str
    tone: str
    state: str
    figures: Sequence[str]
    url: str

    @property
    def facts(self) -> Sequence[tuple[str, str]]:
        return list(zip(COLUMNS, self.figures, strict=True))


@dataclass(frozen=True, slots=True)
class Curve:
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
        return draw_curve(self.shares, self.baseline, self.bad_from)

    @property
    def data_uri(self) -> str:
        return f"data:image/png;base64,{b64encode(self.picture).decode()}"


class Letter:
    """A report in words, ready for layout; addresses are paths.

    Templates read plain figures from the document. Each of `groups` has a title, a count and an
    address; each of `incidents` a title, details and an address.
    """

    columns = COLUMNS

    def __init__(self, document: ReportDocument) -> None:
        self.document, self.subject = document, subject_of(document)
        self.period = _period(document)
        ranked = worst_first(document.models)
        bad = [model for model in ranked if status_of(model) in BAD]
        self.tone = "good" if document.total.runs >= LEAST_TRIALS else "quiet"
        if bad:
            is_watched = all(status_of(model) is SeriesState.WATCH for model in bad)
            self.tone = "warn" if is_watched else "bad"
        if document.degradation:
            self.tone = "bad"
        self.lead, self.verdict = _verdict(document, bad)
        self.others = [_degradation(other, document) for other in document.others]
        degrading = (model for model in bad if status_of(model) is SeriesState.DEGRADING)
        # Few enough for one mail.
        curved = [model for model in degrading if any(runs for runs, _ in model.curve)]
        self.curves = [
            _curve(number, model, document) for number, model in enumerate(curved[:MOST_CURVES], 1)
        ]
        self.total = _model_entry(document.total, "All models")
        self.models = [_model_entry(model) for model in ranked[:MOST_ROWS]]
        self.folded = _summarise_remaining(ranked[MOST_ROWS:])
        self.retries = _retries(document.total)
        self.groups = [
            (
                f"{group.state.capitalize()}: {group.text}",
                f"{plural(group.seen, 'time')} in the period" if group.seen else "",
                group.url,
            )
            for group in document.groups
        ]
        more = plural(document.more_groups, "more failure")
        self.groups_more = f"+{more}" if document.more_groups else ""
        incidents = document.incidents
        self.incidents = [
            _incident(row, document) for row in (incidents.entries if incidents else ())
        ]
        self.incident_figures = _incident_figures(incidents)
        self.quality = _quality(document.quality, document.total)


def _period(document: ReportDocument) -> str:
    first, last = document.first, document.last
    days = f"{first:%a} {first.day} {first:%b %Y}"
    if last != first:
        days += f" to {last:%a} {last.day} {last:%b %Y}"
    hours = (document.until - document.since) / HOUR
    whole = ((last - first).days + 1) * 24
    odd = f" ({hours:g} hours: the clocks changed)" if hours != whole else ""
    return f"{days}{odd}, {document.zone}"


def _verdict(document: ReportDocument, bad: Sequence[ModelFigures]) -> tuple[str, str]:
    total = document.total
    if document.degradation:
        return _degradation(document.degradation, document)
    if not total.runs:
        return "No run ended in this period.", ""
    if bad:
        share = percent(share_of(bad[0].degraded, bad[0].runs))
        others = f", and {plural(len(bad) - 1, 'other model')}" if len(bad) > 1 else ""
        against = "above its baseline" if bad[0].runs_usual else "new and to be watched"
        runs = plural(bad[0].runs, "run")
        text = f"{share} of {runs} degraded"
        if bad[0].calls:
            failed = percent(share_of(bad[0].calls_failed, bad[0].calls))
            text += f", {failed} of {plural(bad[0].calls, 'call')} failed"
        return f"{bad[0].name} is {against}:", f"{text}{others}."
    well = [model for model in document.models if status_of(model) is SeriesState.OK]
    judged = len(well)
    if not judged:
        return "Too few runs to judge:", f"a model is judged from {LEAST_TRIALS} runs on."
    if not _have_past(well):
        return "No baseline yet:", "there are no runs from before this period to compare with."
    if judged == 1:
        return "The model is within its baseline.", ""
    models = _judged_of(document, judged).capitalize()
    return f"{models} models are within their baselines.", ""


def _judged_of(document: ReportDocument, judged: int) -> str:
    models = len(document.models)
    return all_of(judged) if judged == models else f"{judged:,} of {models:,}"


def _have_past(models: Iterable[ModelFigures]) -> bool:
    return any(model.runs_usual or model.runs_before for model in models)


def _degradation(degradation: Degradation, document: ReportDocument) -> tuple[str, str]:
    rate = VerdictRate(
        degradation.bad,
        degradation.total,
        degradation.baseline,
        degradation.noun,
        is_mostly=degradation.is_mostly,
    )
    return (
        f"Degrading since {moment_of(degradation.since, document)}:",
        f"{degradation.subject}, {rate.words(degradation.kind)}. {degradation.cause}".strip(),
    )


def _model_entry(model: ModelFigures, name: str = "") -> ModelEntry:
    standing = status_of(model)
    state = state_words(standing)
    if model.incidents:
        state = f"{state} · {plural(model.incidents, 'incident')}"
    return ModelEntry(
        name=name or model.name,
        tone="" if name else SERIES_TONES[standing],
        state="" if name else state,
        figures=[write(model) for write in COLUMNS.values()],
        url=model.url,
    )


def _money(model: ModelFigures) -> str:
    return "" if model.retry_usd is None else write_usd(model.retry_usd)


def _retries(total: ModelFigures) -> str:
    """Return the cost of retries: money, as far as prices are known, tokens and time."""
    if not total.retry_tokens and not total.retry_ms:
        return "No retries."
    money = _money(total)
    cost = f"{money}, " if money else ""
    took = f"{short_count(total.retry_tokens)} tokens and {duration(total.retry_ms / 1000)}"
    unknown = "" if money else " No prices are known."
    return f"Spent on retries: {cost}{took}.{unknown}"


def _curve(place: int, model: ModelFigures, document: ReportDocument) -> Curve:
    buckets = [RunBucket(*pair) for pair in model.curve]
    baseline = share_of(model.degraded_usual, model.runs_usual)
    low, high = wilson_interval(model.degraded, model.runs)
    repaired = share_of(model.repaired, model.repaired + model.degraded)
    width = timedelta(seconds=document.slot_seconds)
    worst = max(range(len(buckets)), key=lambda at: buckets[at].share)
    peak = moment_of(document.since + worst * width, document)
    # The slot of the onset; the first if the onset is before the period.
    bad_from = max((model.since - document.since) // width, 0) if model.since else None
    return Curve(
        cid=f"curve-{place}@failsoft",
        name=model.name,
        url=model.url,
        text=f"Share of degraded runs every {duration(width)}"
        f", peak {percent(buckets[worst].share, 0)} {peak}"
        f", baseline {percent(baseline)}",
        facts=f"95 % interval {percent(low)} to {percent(high)}, recovered {percent(repaired)}",
        spark=sparkline(buckets),
        shares=[bucket.share if bucket.runs else None for bucket in buckets],
        baseline=baseline,
        bad_from=bad_from,
    )


def _summarise_remaining(models_left: Sequence[ModelFigures]) -> list[str]:
    """Return sentences on the models beyond the table, by state."""
    names: dict[str, list[str]] = {words: [] for words in REMAINING.values()}
    for model in models_left:
        state = SeriesState.DEGRADING if model.incidents else status_of(model)
        share = percent(share_of(model.degraded, model.runs))
        names[REMAINING[state]].append(f"{model.name} ({share} of {count(model.runs)})")
    return [
        f"{plural(len(own), 'more model')} {words}: {listed(own, MOST_NAMED)}."
        for words, own in names.items()
        if own
    ]


def _incident(incident: IncidentInPeriod, document: ReportDocument) -> tuple[str, str, str]:
    since = moment_of(incident.onset, document)
    if incident.ended_at is None:
        end = "open"
    else:
        lasted = duration(incident.ended_at - incident.onset)
        end = f"resolved {incident.ending} {moment_of(incident.ended_at, document)}, after {lasted}"
    return (
        f"{incident.title} · {incident.severity}",
        f"{incident.cause.rstrip('.')}. Since {since}, {end}.",
        incident.url,
    )


def _incident_figures(figures: IncidentFigures | None) -> list[str]:
    if figures is None:
        return []
    if not figures.count and not figures.open:
        return ["No incidents."]
    dated = plural(figures.count, "incident")
    sentences = [f"{dated} in the period, {count(figures.open)} open when this report was made."]
    if figures.acknowledge_seconds is not None:
        sentences.append(
            f"{count(figures.acknowledged)} acknowledged, "
            f"median time {duration(figures.acknowledge_seconds)}."
        )
    if figures.clear_seconds is not None:
        sentences.append(f"Median time to clear: {duration(figures.clear_seconds)}.")
    if figures.judged:
        noise = percent(share_of(figures.false_alarms, figures.judged), 0)
        sentences.append(f"False alarms: {noise} of {count(figures.judged)} resolved with a cause.")
    return sentences


def _quality(quality: QualityFigures, total: ModelFigures) -> list[str]:
    sentences = [
        f"{plural(quality.events, 'event')}, {count(quality.rejected)} rejected, "
        f"{plural(quality.duplicates, 'duplicate')}."
    ]
    if total.unchecked:
        were = "was" if total.unchecked == 1 else "were"
        answers = plural(total.unchecked, "answer")
        sentences.append(f"{answers} {were} not checked: no first passes.")
    if total.cancelled:
        sentences.append(f"{count(total.cancelled)} cancelled by callers: in no rate.")
    if quality.silent:
        silent = listed(quality.silent, MOST_NAMED)
        sentences.append(f"Silent sources: {silent}, nothing on the last day.")
    if quality.without_successes:
        mute = listed(quality.without_successes, MOST_NAMED)
        sentences.append(
            f"No successes reported by {mute}: failure rates of calls are not meaningful."
        )
    elif quality.sources:
        reports = {1: "The source reports", 2: "Both sources report"}
        sentences.append(
            f"{reports.get(quality.sources, f'All {quality.sources} sources report')} successes."
        )
    return sentences

"""The wording of a verdict: one sentence."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta, tzinfo
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, PlainSerializer

from diagnostics.analysis.series import SeriesState
from diagnostics.analysis.statistics import LEAST_TRIALS, wilson_interval
from diagnostics.figures import Tone, all_of, percent, plural, rate_percent, write_moment
from diagnostics.ingest.deploy_items import ObservedKind
from diagnostics.queries.call_counts import UNSAID
from diagnostics.verdict.cause import CAUSES, LEAST_CALLS, OURS, Cause, Finding
from diagnostics.verdict.cells import LIMITED

LATELY = timedelta(hours=1)
"""A deploy at most this long before the onset, or after it, is near it."""
WITH_DAY, WITHOUT_DAY = "%Y-%m-%d %H:%M UTC", "%H:%M UTC"
# A time among words: an object in JSON, to distinguish it from its neighbours.
Moment = Annotated[
    datetime,
    BeforeValidator(lambda kept: kept["at"] if isinstance(kept, Mapping) else kept),
    PlainSerializer(lambda at: {"at": at.isoformat()}, when_used="json"),
]
MOSTLY: Mapping[str, str] = {
    "not_json": "not JSON",
    "schema_invalid": "breaking the schema",
    "empty_output": "empty output",
    "multiple_objects": "multiple objects",
    "duplicate_key": "duplicate keys",
    "refusal": "refusals",
    "unknown_tool": "unknown tools",
    "call_timeout": "timeouts",
    "call_provider_error": "provider errors",
    "call_other": "without an answer",
    LIMITED: "rate limited",
}
OBSERVED: Mapping[ObservedKind, str] = {
    ObservedKind.MODEL: "The served model",
    ObservedKind.UPSTREAM: "The upstream",
    ObservedKind.FINGERPRINT: "The system fingerprint",
}
SERIES_TONES: dict[SeriesState, Tone] = {
    SeriesState.DEGRADING: "bad",
    SeriesState.WATCH: "warn",
    SeriesState.OK: "good",
    SeriesState.NOT_JUDGED: "quiet",
    SeriesState.LOW_VOLUME: "quiet",
    SeriesState.NO_DATA: "quiet",
}


def state_words(state: SeriesState) -> str:
    return state.replace("_", " ")


@dataclass(frozen=True, slots=True)
class VerdictRate:
    """Failures among calls or runs, and the baseline."""

    bad: int
    total: int
    baseline: float | None
    noun: str = "run"
    beside: "VerdictRate | None" = None
    """Runs beside calls, or calls beside runs; None if these do not tell of the failures."""
    is_mostly: bool = True  # Most failures are of the kind that rose most.

    @property
    def share(self) -> float:
        return self.bad / self.total if self.total else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the share."""
        return wilson_interval(self.bad, self.total)

    @property
    def part(self) -> str:
        return part_words(self.share, self.total, self.noun)

    def words(self, kind: str) -> str:
        """Return the rate beside its baseline, and the kind of the failures."""
        usual = "no baseline yet"
        if self.baseline is not None:
            usual = f"baseline {rate_percent(self.baseline)}"
        text = f"{self.part} ({usual})"
        if kind in {"", UNSAID}:
            return text
        words = MOSTLY.get(kind, kind.replace("_", " "))
        return f"{text}, mostly {words}" if self.is_mostly else f"{text}, largest rise: {words}"


@dataclass(frozen=True, slots=True)
class ObservedChange:
    """An observed change of what answers a model's calls."""

    kind: ObservedKind
    previous: str
    version: str
    at: datetime

    @property
    def words(self) -> tuple[str | datetime, ...]:
        subject = f" {OBSERVED[self.kind]} changed from {self.previous} to {self.version} at "
        return (subject, self.at, ".")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence in two halves with a time between them, and its reason.

    The reason consists of words and times, so that a page can show these in a zone. It is
    stored in parts, and formatted where it is shown.
    """

    lead: str
    since: datetime | None
    rest: str
    reason: tuple[str | Moment, ...] = ()
    is_old: bool = False
    """Whether the time needs a date."""

    @property
    def parts(self) -> list[str | datetime]:
        """The headline in words and time, without the full stop."""
        rest = self.rest.rstrip(".")
        if self.since is None:
            return [f"{self.lead}{rest}"]
        return [f"{self.lead} since ", self.since, rest]

    def past(self, ended: datetime) -> "tuple[list[str | datetime], list[str | datetime]]":
        """Return what degraded, from when to when, and its cause."""
        parts: list[str | datetime] = self.parts
        if self.since:
            lead = "Degraded" if self.lead.startswith("Degrading") else self.lead
            parts = [f"{lead} from ", self.since, " to ", ended, self.rest.rstrip(".")]
        return parts, [
            part.replace("Looks like", "Looked like") if isinstance(part, str) else part
            for part in self.reason
        ]

    @property
    def headline(self) -> str:
        """The sentence without its reason; the time is in UTC."""
        form = WITH_DAY if self.is_old else WITHOUT_DAY
        return _in_words(self.parts, lambda at: at.strftime(form)) + "."

    @property
    def why(self) -> str:
        """The reason only, with its times in UTC."""
        return _in_words(self.reason, lambda at: at.strftime(WITH_DAY))

    @property
    def text(self) -> str:
        return f"{self.headline} {self.why}".strip()

    def written(self, zone: tzinfo, now: datetime | None = None) -> tuple[str, str]:
        """Return the headline and the reason as they are read in a zone."""

        def write(at: datetime) -> str:
            return write_moment(at, "lately", zone, now)

        return f"{_in_words(self.parts, write)}.", _in_words(self.reason, write)


def _in_words(parts: Iterable[str | datetime], write: Callable[[datetime], str]) -> str:
    return "".join(part if isinstance(part, str) else write(part) for part in parts)


def describe_degradation(
    subject: str,
    rate: VerdictRate,
    since: datetime | None,
    finding: Finding,
    last_change: datetime | None,
    now: datetime | None = None,
    observed: ObservedChange | None = None,
) -> Sentence:
    """Return the sentence of a degradation, with a date unless it is today's (UTC)."""
    reason = _reason(finding, since, last_change)
    if observed and finding.cause not in OURS:
        reason += observed.words
    is_old = since is not None and now is not None and since.date() != now.date()
    rest = f": {subject}, {rate.words(finding.top_kind)}{_ends_words(rate)}."
    return Sentence("Degrading", since, rest, reason, is_old)


def _ends_words(rate: VerdictRate) -> str:
    """Say how runs ended where calls are counted: retries and fallbacks may recover them."""
    runs = rate.beside
    if rate.noun != "call" or runs is None or (runs.bad, runs.total) == (rate.bad, rate.total):
        return ""
    return f"; {runs.part} degraded"


def part_words(share: float, total: int, noun: str) -> str:
    """Return a share with its total; of fewer than have a rate the count: `1 of 1 run`."""
    part = f"{round(share * total):,}" if total < LEAST_TRIALS else rate_percent(share)
    return f"{part} of {plural(total, noun)}"


class StoredRate(BaseModel, frozen=True):
    """A share of 0 to 1 with its 95 % interval, of so many, and what was usual."""

    share: float
    low: float | None = None
    high: float | None = None
    baseline: float | None = None
    n: int = 0
    counted: str = "runs"

    @property
    def part(self) -> str:
        return part_words(self.share, self.n, self.counted.removesuffix("s"))

    @property
    def words(self) -> str:
        text = self.part
        if self.low is not None and self.high is not None:
            text += f" (95 % between {percent(self.low)} and {percent(self.high)})"
        return text


UNSURE = Sentence("Not enough data", None, ".", ())


def calm_words(models: int) -> Sentence:
    """Return the sentence for models within their baseline."""
    subject = "The model is" if models == 1 else f"{all_of(models).capitalize()} models"
    return Sentence(f"{subject} within baseline", None, ".", ())


SHIFTED = "The rate is above baseline mostly because more calls go where more always failed."


def describe_calm(models: int, calls: int, over: tuple[datetime, datetime] | None) -> Sentence:
    """Return the sentence for calls within their baseline, and of a degradation that has ended."""
    evaluated = f"{plural(calls, 'call')} evaluated."
    reason: tuple[str | datetime, ...] = (evaluated,)
    if over:
        reason = (f"{evaluated} A degradation from ", over[0], " to ", over[1], " has ended.")
    return replace(calm_words(models), reason=reason)


def describe_new(calls: int) -> Sentence:
    """Return the sentence for calls that nothing older can be compared with."""
    reason = f"{plural(calls, 'call')} evaluated, none of them older than a day."
    return Sentence("No baseline yet", None, ".", (reason,))


def describe_unsure(calls: int, unrated: int = 0) -> Sentence:
    """Return the sentence for too few calls or failures, or for failures without a rate."""
    reason = "The rate may be above baseline; there are too few failures to tell."
    if calls < LEAST_CALLS:
        reason = f"{plural(calls, 'call')} evaluated."
        if unrated:
            reason += f" {plural(unrated, 'failure')} without a rate: no success is reported."
    return replace(UNSURE, reason=(reason,))


def _reason(
    finding: Finding, since: datetime | None, last_change: datetime | None
) -> tuple[str | datetime, ...]:
    words = cause_words(finding)
    if finding.cause is not Cause.MODEL or last_change is None or since is None:
        return (words,)
    words = words.rstrip(".")
    is_recent = last_change >= since - LATELY
    deploy_text = "last deploy at" if is_recent else "last deploy before it:"
    return (f"{words}{', ' if ':' in words else ': '}{deploy_text} ", last_change, ".")


UNCOMPARED = "There are no other calls to compare with."
NO_CAUSE = "The calls so far do not tell the cause."


def _alternative(cause: Cause, value: str) -> str:
    if cause is Cause.ENVIRONMENT and not value:
        return "our network"
    node = "at the node " if cause is Cause.VALIDATOR and value else ""
    return f"{CAUSES[cause].noun} {node}{value}".rstrip()


def _mixed_words(finding: Finding) -> str:
    """Return the two causes that cannot be told apart, and what would tell."""
    names = [_alternative(cause, value) for cause, value in finding.alternatives]
    if not names:
        return NO_CAUSE if finding.is_compared else UNCOMPARED
    fit = ", which have the same calls" if finding.came_together else "; so far the calls fit both"
    # A cause without a value has all calls: only those without the other one would tell.
    parts = [_alternative(cause, value) for cause, value in finding.alternatives if value]
    telling = f"without {parts[0]}" if len(parts) == 1 else "of one without the other"
    return f"Looks like {' or '.join(names)}{fit}. Calls {telling} would tell."


LIMIT = "Looks like a limit of the provider{of_model}{place}: it refuses our calls (429)."
OUTAGE_UNCOMPARED = (
    "Calls to {value} end without an answer; there are too few good calls to another provider to"
    " compare with: it may be the provider, or our network."
)
EVERYWHERE = "{words}: more calls to {hit} end without an answer."


def cause_words(finding: Finding) -> str:
    cause, value = finding.cause, finding.value
    if cause is Cause.MIXED:
        return _mixed_words(finding)
    words = CAUSES.get(cause) if cause else None
    if words is None:
        return NO_CAUSE
    called = plural(max(finding.called_models, finding.models), "model")
    hit = f"{finding.models} of {called}"
    affected = plural(finding.prompts, "prompt version")
    return _template_of(finding, words.sentence).format(
        words=words.looks or f"Looks like {words.noun}",
        value=f"{value}{finding.place}",
        place=finding.place,
        of_model=" for this model" if cause is Cause.MODEL else "",
        nothing_new="" if finding.has_new_version else "; no new version began with it",
        not_us=", not us" if finding.is_theirs else "",
        versions=f": {affected} affected" if finding.prompts else "",
        node=f" at the node {value.replace('_', ' ')}" if value else "",
        models=hit if finding.models < finding.called_models else plural(finding.models, "model"),
        hit=hit,
    )


def _template_of(finding: Finding, usual: str) -> str:
    match finding.cause:
        case Cause.PROVIDER_OUTAGE | Cause.MODEL if finding.top_kind == LIMITED:
            return LIMIT
        case Cause.PROVIDER_OUTAGE if not finding.is_compared:
            return OUTAGE_UNCOMPARED
        case Cause.ENVIRONMENT if not finding.value:
            return EVERYWHERE
    return usual

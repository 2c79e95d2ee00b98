"""A verdict as it is told: one sentence, and what to change with the evidence for it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from diagnostics.core.statistics import wilson_interval
from diagnostics.core.verdict.cause import Finding
from diagnostics.core.verdict.suspects import Cause
from diagnostics.core.wording import percent, plural

LATELY = timedelta(hours=1)
"""A deploy so long before the onset is named as near it; an older one is ruled out."""
KEPT_FORMAT = "%Y-%m-%d %H:%M UTC"
KEPT_TIME = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d UTC)", re.ASCII)
CAUSE_WORDS: Mapping[Cause, str] = {
    Cause.PROVIDER_OUTAGE: "Looks like an outage of the provider, not us",
    Cause.MODEL: "Looks like the model or provider, not us",
    Cause.PROMPT: "Looks like our prompt",
    Cause.SCHEMA: "Looks like our schema",
    Cause.RELEASE: "Looks like our deploy",
    Cause.VALIDATOR: "Looks like our validator or the tools it knows: every model is hit",
    Cause.MIXED: "No single cause explains it",
}


@dataclass(frozen=True, slots=True)
class Rate:
    """So many of so many, and what is usual."""

    bad: int
    total: int
    baseline: float | None
    noun: str = "run"

    @property
    def share(self) -> float:
        """Between 0 and 1."""
        return self.bad / self.total if self.total else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % interval of the share."""
        return wilson_interval(self.bad, self.total)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What was seen of the top kind of failure, where it was told."""

    cut_at_tokens: int | None = None
    """The output tokens at which answers end that were cut off."""
    budget_tokens: int | None = None
    tools: Sequence[tuple[str, str | None]] = ()
    """Unknown tools, each with the nearest that is registered."""
    pointers: Sequence[tuple[str, str, int]] = ()
    """Where schemas fail: pointer, code, how often."""


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing to change, and why."""

    text: str
    evidence: str


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence in two halves with a time between them, and the reason behind it.

    The reason is made of words and times, so that a page can show these in a zone.
    """

    lead: str
    since: datetime | None
    rest: str
    reason: tuple[str | datetime, ...] = ()

    @property
    def headline(self) -> str:
        """What and since when, without the reason; the time is in UTC."""
        begun = f" since {self.since:%H:%M}" if self.since else ""
        return f"{self.lead}{begun}{self.rest}"

    @property
    def why(self) -> str:
        """The reason alone, its times in UTC."""
        return "".join(
            part if isinstance(part, str) else part.strftime(KEPT_FORMAT)
            for part in self.reason
        )

    @property
    def text(self) -> str:
        """All of it."""
        return f"{self.headline} {self.why}".strip()


def read_parts(text: str, since: datetime | None) -> list[str | datetime]:
    """Give the words and times of a sentence that was kept as text, for a reader's zone.

    `since` is the verdict's own: its sentence says no more than hour and minute.
    """
    begun = f" since {since:%H:%M}:" if since else ""
    if since and begun in text:
        head, _, tail = text.partition(begun)
        return [f"{head} since ", since, *read_parts(f":{tail}", None)]
    return [_read_time(part) for part in KEPT_TIME.split(text)]


def _read_time(part: str) -> str | datetime:
    try:
        return datetime.strptime(part, KEPT_FORMAT).replace(tzinfo=UTC)
    except ValueError:
        return part


def tell(
    subject: str,
    rate: Rate,
    since: datetime | None,
    finding: Finding,
    last_change: datetime | None,
) -> Sentence:
    """Write the sentence of a degradation."""
    against = (
        f" (baseline {percent(rate.baseline, 0 if rate.baseline >= 0.1 else 1)})"
        if rate.baseline is not None
        else " (no baseline yet)"
    )
    is_said = finding.top_kind not in {"", "other_invalid"}
    kind = f", mostly {finding.top_kind.replace('_', ' ')}" if is_said else ""
    share = f"{percent(rate.share, 0)} of {plural(rate.total, rate.noun)}"
    reason = _reason(finding, since, last_change)
    return Sentence("Degrading", since, f": {subject}, {share}{against}{kind}.", reason)


def tell_calm(
    models: int,
    calls: int,
    over: tuple[datetime, datetime] | None = None,
    *,
    shifted: bool = False,
) -> Sentence:
    """Write the sentence of what is within its baseline, and what was a while ago."""
    named = f"All {models} models" if models > 1 else "The model"
    lead = f"{named} within baseline" if models > 1 else f"{named} is within baseline"
    seen = f"{plural(calls, 'call')} looked at."
    reason: tuple[str | datetime, ...] = (seen,)
    if shifted:
        more = (
            "More fail than usual only because more calls go where more always failed."
        )
        reason = (f"{seen} {more}",)
    elif over:
        reason = (f"{seen} A degradation from ", over[0], " to ", over[1], " is over.")
    return Sentence(lead, None, ".", reason)


def _reason(
    finding: Finding, since: datetime | None, last_change: datetime | None
) -> tuple[str | datetime, ...]:
    if finding.cause is not Cause.MODEL:
        return (_why(finding),)
    hit = plural(finding.prompts, "prompt version")
    words = f"{CAUSE_WORDS[Cause.MODEL]}: {hit} affected"
    if last_change is None or since is None:
        return (f"{words}.",)
    is_lately = last_change >= since - LATELY
    told = "last deploy at" if is_lately else "no deploy since"
    return (f"{words}, {told} ", last_change, ".")


def _why(finding: Finding) -> str:
    if finding.cause is None or finding.cause not in CAUSE_WORDS:
        return "There is not enough data to say why."
    words = CAUSE_WORDS[finding.cause]
    if finding.cause in (Cause.PROMPT, Cause.SCHEMA, Cause.RELEASE):
        return f"{words} {finding.value}: {plural(finding.models, 'model')} affected."
    if finding.cause is Cause.MIXED and finding.parts:
        return f"{words}; part of it looks like {' and '.join(finding.parts)}."
    if finding.cause is Cause.VALIDATOR and finding.value:
        return f"{words} at the node {finding.value.replace('_', ' ')}."
    return f"{words}."


def advise(kind: str, cause: Cause | None, evidence: Evidence) -> list[Advice]:
    """Say what to change, by the kind of failure (worst first)."""
    found = [*_by_cause(cause), *_by_kind(kind, evidence)]
    return found[:3]


def _by_cause(cause: Cause | None) -> list[Advice]:
    if cause is Cause.PROVIDER_OUTAGE:
        text = "Route plans to another provider until calls are answered again."
        return [Advice(text, "Calls end without an answer.")]
    if cause is Cause.PROMPT:
        text = "Go back to the prompt version before, or mend this one."
        return [Advice(text, "Only calls with the new version fail more.")]
    if cause is Cause.SCHEMA:
        text = "Go back to the schema version before, or tell the prompt what changed."
        return [Advice(text, "Only answers to the new version fail more.")]
    if cause is Cause.RELEASE:
        text = "Roll the release back, or look at what it changed."
        return [Advice(text, "Only calls of this source and release fail more.")]
    return []


def _by_kind(kind: str, evidence: Evidence) -> list[Advice]:
    match kind:
        case "truncated":
            return [_larger_budget(evidence)]
        case "not_json" | "multiple_objects":
            text = "Ask for the provider's JSON-schema mode from the first attempt on."
            return [Advice(text, "Answers hold text around the JSON, or none.")]
        case "unknown_tool":
            return [_name_tools(evidence)]
        case "schema_invalid":
            return [_look_at(evidence)]
        case "empty_output" | "refusal":
            text = (
                "Look at samples: shorten the prompt, or try the model's older version."
            )
            return [Advice(text, f"Answers are {kind.replace('_', ' ')}.")]
        case "call_rate_limited":
            text = "Lower the number of calls at once, or ask for a higher limit."
            return [Advice(text, "The provider answers 429.")]
        case "call_timeout" | "call_provider_error" | "call_other":
            return [Advice("Look at the provider's status.", "Calls get no answer.")]
    return [Advice("Look at samples of the failure.", "The kind is not a known one.")]


def _larger_budget(evidence: Evidence) -> Advice:
    text = "Raise the budget of output tokens, or ask for shorter plans."
    if evidence.cut_at_tokens is None:
        return Advice(text, "Answers end at the token limit.")
    seen = f"Answers that were cut off end at {evidence.cut_at_tokens:,} tokens"
    if evidence.budget_tokens is None:
        return Advice(text, f"{seen}.")
    return Advice(text, f"{seen}; the budget is {evidence.budget_tokens:,}.")


def _name_tools(evidence: Evidence) -> Advice:
    text = "Name the registered tools in the prompt, or register the missing ones."
    named = [
        f"{name} (nearest: {nearest})" if nearest else name
        for name, nearest in evidence.tools[:3]
    ]
    return Advice(
        text, f"Asked for: {', '.join(named)}." if named else "Unknown tools."
    )


def _look_at(evidence: Evidence) -> Advice:
    text = "Show the field in the prompt's example, or let the schema do without it."
    places = [
        f"{at or '/'} ({code}, {seen})" for at, code, seen in evidence.pointers[:3]
    ]
    told = (
        f"Answers fail at {', '.join(places)}."
        if places
        else "Answers break the schema."
    )
    return Advice(text, told)

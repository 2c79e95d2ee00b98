"""Advice by cause and kind of failure, with evidence."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from diagnostics.figures import count, percent, plural, shorten
from diagnostics.queries.call_counts import UNSAID
from diagnostics.store.rollups import CALL_ERRORS
from diagnostics.verdict.cause import CAUSES, VERSIONS, Cause, CauseWords, Finding
from diagnostics.verdict.cells import LIMITED
from diagnostics.verdict.evidence import Evidence, RisenPlace

LONGEST_PLACE = 80
MOST_REASONING = 0.5
"""The share of output tokens from which on reasoning has used up the budget."""


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing to change, and why."""

    text: str
    evidence: str


NAMED_ERROR = "Look the error up at the provider, and read samples."
COMPARE = Advice(
    "Replay samples in the lab with another model or prompt, to compare.",
    "No other calls to compare with: this may be the model or a change of ours.",
)


@dataclass(frozen=True, slots=True)
class KindAdvice:
    """The advice for a kind of failure: in general, and if a change of ours is the cause."""

    text: str
    evidence: str
    ours: str = ""


BY_KIND: Mapping[str, KindAdvice] = {
    "": KindAdvice(
        "Post an event for each attempt to see the kind of failure.",
        "The kind is unknown: only ends of runs or outcomes are posted",
    ),
    "not_json": KindAdvice(
        "Request the provider's JSON-schema mode from the first attempt on.",
        "Answers contain no readable JSON",
    ),
    "multiple_objects": KindAdvice(
        "Ask for exactly one JSON object, or request JSON-schema mode.",
        "Answers contain several different objects",
    ),
    "duplicate_key": KindAdvice(
        "Show each key once in the prompt's example, and a list where values repeat.",
        "Answers give the same key with different values",
    ),
    "schema_invalid": KindAdvice(
        "Show a valid answer in the prompt's example, and compare it with the schema.",
        "Answers break the schema",
    ),
    "empty_output": KindAdvice(
        "Check stop sequences, content filters and the output token budget.",
        "Answers contain no text",
    ),
    "refusal": KindAdvice(
        "Read samples, and reword what the model declines.",
        "The model or the provider declines to answer",
    ),
    "other": KindAdvice(
        "Read samples, and post a parse_error_type that names the fault.",
        "Answers are invalid in a way that the events do not name",
    ),
    "call_timeout": KindAdvice(
        "Check the provider's status and latency, and the timeout of the calls.",
        "Calls time out",
        ours="Check whether this version makes prompts or answers longer.",
    ),
    "call_provider_error": KindAdvice(
        "Check the provider's status, and the errors in samples.",
        "Calls end with an error of the provider",
        ours="Check what this version sends: size, parameters, tools and schema.",
    ),
    LIMITED: KindAdvice(
        "Lower the number of concurrent calls, or request a higher limit.",
        "The provider refuses calls (429)",
    ),
    "call_other": KindAdvice(
        "Check the provider's status, and post a call_error_type with failed calls.",
        "Calls end without an answer, for a reason that the events do not name",
    ),
    "circuit_open": KindAdvice(
        "Check the breaker of this model: it is open, so the model is not called.",
        "Runs or calls end at an open breaker",
    ),
    "budget_exhausted": KindAdvice(
        "Raise the budget of a run, or lower the number of attempts.",
        "Runs end because their tokens, time or calls are spent",
    ),
    "run_timeout": KindAdvice(
        "Raise the time limit of a run, or check the latency of the model.",
        "Runs end at their time limit",
    ),
    "provider_failed": KindAdvice(
        "Check the provider's status, and the errors of the calls.",
        "Runs end because their calls got no answer",
    ),
}
BY_FAULT: Mapping[str, str] = {
    "missing": "Show {place} in the prompt's example, or make it optional in the schema.",
    "enum": "List the allowed values of {place} in the prompt, or allow the new value.",
    "extra": "State in the prompt that no other fields are allowed, or allow {place}.",
    "type": "Show the type of {place} in the prompt's example, or accept the other type.",
    "tool_unknown": "Name the registered tools in the prompt, or register the missing ones.",
    "argument_invalid": "Describe {place} in the schema of its tool: type, limits, allowed values.",
}


def advise(finding: Finding, evidence: Evidence) -> list[Advice]:
    """Return what to change, by the cause and the kind of failure, each with its evidence."""
    kind, cause, is_compared = finding.top_kind, finding.cause, finding.is_compared
    by_kind = _by_kind(kind, cause, evidence)
    is_silent = kind in CALL_ERRORS
    words = CAUSES.get(cause) if cause else None
    if words is None or (cause == Cause.VALIDATOR and is_silent):
        return [by_kind]
    if cause == Cause.PROVIDER_OUTAGE and not (is_silent and is_compared):
        return [by_kind]
    if cause == Cause.MODEL and not is_compared:
        return [by_kind, COMPARE]
    by_cause = _by_cause(words, finding.part, is_compared=is_compared)
    if cause == Cause.PAIR and finding.is_new:
        by_cause = Advice(NEW_IN_PAIR, by_cause.evidence)
    if cause in OUR_WAY and is_silent and is_compared and kind != LIMITED:
        return [by_cause]
    is_limit = kind in AT_LIMIT and cause in {Cause.MODEL, Cause.PROVIDER_OUTAGE}
    return [by_kind, by_cause] if is_limit else [by_cause, by_kind]


AT_LIMIT = (LIMITED, "truncated")
"""Kinds that end at a limit: to change it helps sooner than another model does."""
OUR_WAY = (Cause.CREDENTIAL, Cause.ENVIRONMENT)
"""Causes on our way to providers that answer others: these are well."""
NEW_IN_PAIR = "Restore the previous version, if any, where both are called, or correct the new one."


def _by_cause(words: CauseWords, part: tuple[float, float] | None, *, is_compared: bool) -> Advice:
    if not is_compared:
        return Advice(words.advice, f"{words.uncompared}.")
    if part is None:
        return Advice(words.advice, f"{words.evidence} fail more.")
    excess, calls = (percent(share, 0) for share in part)
    figures = f"{excess} of the failures above baseline, {calls} of all calls"
    return Advice(words.advice, f"{words.evidence}: {figures}.")


def _by_kind(kind: str, cause: Cause | None, evidence: Evidence) -> Advice:
    match kind:
        case "truncated":
            return _on_budget(evidence)
        case "unknown_tool":
            return _on_tools(evidence)
        case "empty_output" if _is_reasoning(evidence):
            return Advice(_LESS_REASONING, _figures("Answers contain no text", evidence))
    if kind == UNSAID:
        kind = "other" if evidence.sampled else ""
    unlisted = KindAdvice("Read samples of the failure.", f"The kind is {kind.replace('_', ' ')}")
    if kind == "call_other" and evidence.call_errors:
        kind = evidence.call_errors[0]
        words = f"Calls end without an answer, most often with {shorten(kind, LONGEST_PLACE)}"
        unlisted = KindAdvice(NAMED_ERROR, words)
    advice = BY_KIND.get(kind, unlisted)
    text = advice.ours if advice.ours and cause in VERSIONS else advice.text
    places = _places(evidence.pointers) if kind in {"duplicate_key", "schema_invalid"} else ""
    for first in evidence.pointers[:1] if kind == "schema_invalid" else ():
        by_fault = BY_FAULT.get(first.detail, text)
        text = by_fault.format(place=shorten(first.name, LONGEST_PLACE))
    return Advice(text, _figures(f"{advice.evidence}{places}", evidence))


_LESS_REASONING = (
    "Lower the reasoning effort, or raise the output token budget by what reasoning takes."
)


def _is_reasoning(evidence: Evidence) -> bool:
    spent, all_tokens = evidence.reasoning_tokens, evidence.cut_at_tokens
    return bool(spent and all_tokens and spent >= all_tokens * MOST_REASONING)


def _on_budget(evidence: Evidence) -> Advice:
    """Return advice by what used up the budget: reasoning, the answer or neither."""
    budget, reasoning = evidence.budget_tokens, evidence.reasoning_tokens
    text = "Raise the output token budget, or ask for shorter plans."
    if evidence.cut_at_tokens is None:
        return Advice(text, _figures("Answers end at the token limit", evidence))
    observed = f"Truncated answers end at {plural(evidence.cut_at_tokens, 'token')} (median)"
    observed += f"; the budget is {count(budget)}" if budget else ""
    observed += f"; reasoning takes {count(reasoning)} of them" if reasoning else ""
    if not evidence.is_at_budget:
        text = "Check stop sequences, stream timeouts and the context window: the budget is not"
        text = f"{text} used up."
    elif _is_reasoning(evidence):
        text = _LESS_REASONING
    return Advice(text, _figures(observed, evidence))


def _on_tools(evidence: Evidence) -> Advice:
    tools = [
        f"{tool.name} (nearest: {tool.detail})" if tool.detail else tool.name
        for tool in evidence.tools
    ]
    most = f", most of all {', '.join(tools)}" if tools else ""
    return Advice(BY_FAULT["tool_unknown"], _figures(f"Unknown tools{most}", evidence))


def _places(places: Sequence[RisenPlace]) -> str:
    risen = [
        f"{shorten(place.name, LONGEST_PLACE)}"
        f" ({place.detail}, {place.sampled} sampled, {place.before} in the week before)"
        for place in places
    ]
    return f" at {', '.join(risen)}" if risen else ""


def _figures(observation: str, evidence: Evidence) -> str:
    """Append the share of calls that fail in this way, and the baseline."""
    now, before = evidence.now, evidence.before
    if not now.calls:
        sampled = f": {plural(evidence.sampled, 'failure')} sampled" if evidence.sampled else ""
        return f"{observation}{sampled}."
    baseline = f", {percent(before.share)} in the week before" if before.calls else ""
    return f"{observation}: {percent(now.share)} of {plural(now.calls, 'call')}{baseline}."

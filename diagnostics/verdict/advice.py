"""What to change, by the cause and the kind of failure, with the evidence for it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from diagnostics.verdict.suspects import Cause
from failsoft.events import NEAREST_TOOL

LIMITED = "call_rate_limited"


@dataclass(frozen=True, slots=True)
class FailureEvidence:
    """What one failure says of its cause."""

    output_tokens: int | None = None
    max_output_tokens: int | None = None
    tool: str | None = None
    attributes: Mapping[str, Any] = field(default_factory=dict)
    errors: Sequence[Mapping[str, Any]] = ()


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


def gather(failures: Sequence[FailureEvidence]) -> Evidence:
    """Return what advice rests on, from the latest failures."""
    tokens = [one.output_tokens for one in failures if one.output_tokens]
    budgets = [one.max_output_tokens for one in failures if one.max_output_tokens]
    tools = Counter(one.tool for one in failures if one.tool)
    nearest = {
        one.tool: one.attributes[NEAREST_TOOL] for one in failures if NEAREST_TOOL in one.attributes
    }
    places = Counter(
        (str(error.get("path") or ""), str(error.get("code") or "invalid"))
        for one in failures
        for error in one.errors[:1]
    )
    return Evidence(
        cut_at_tokens=round(median(tokens)) if tokens else None,
        budget_tokens=max(budgets, default=None),
        tools=[(tool, nearest.get(tool)) for tool, _ in tools.most_common(3)],
        pointers=[(path, code, seen) for (path, code), seen in places.most_common(3)],
    )


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing to change, and why."""

    text: str
    evidence: str


OTHER_PROVIDER = Advice(
    "Route plans to another provider until calls are answered again.",
    "Calls end without an answer.",
)
OTHER_MODEL = Advice(
    "Route plans to another model until this one is well again.",
    "Only calls to this model fail more.",
)
SOURCE = Advice(
    "Look at what changed there: settings, inputs, a deploy nobody told.",
    "Only calls of this source fail more.",
)
BY_CAUSE: Mapping[Cause | None, Advice] = {
    Cause.PROVIDER_OUTAGE: OTHER_PROVIDER,
    Cause.PROMPT: Advice(
        "Go back to the prompt version before, or mend this one.",
        "Only calls with the new version fail more.",
    ),
    Cause.SCHEMA: Advice(
        "Go back to the schema version before, or tell the prompt what changed.",
        "Only answers to the new version fail more.",
    ),
    Cause.RELEASE: Advice(
        "Roll the release back, or look at what it changed.",
        "Only calls of this source and release fail more.",
    ),
    Cause.VALIDATOR: Advice(
        "Look at what changed in the checks of answers and in the tools.",
        "Every model fails in the same way.",
    ),
}


def advise(
    kind: str, cause: Cause | None, evidence: Evidence, *, is_new: bool = True
) -> list[Advice]:
    """Say what to change, by the cause (`is_new`: a version) and the kind of failure."""
    by_kind = _by_kind(kind, evidence)
    if cause is Cause.PROVIDER_OUTAGE and kind == LIMITED:
        return [*by_kind, OTHER_PROVIDER]
    if cause is Cause.MODEL:
        return [*by_kind, OTHER_MODEL]
    if cause is Cause.SOURCE:
        return [SOURCE, *by_kind]
    return [BY_CAUSE[cause], *by_kind] if cause in BY_CAUSE else by_kind


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
            text = "Look at samples: shorten the prompt, or try the model's older version."
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
        f"{name} (nearest: {nearest})" if nearest else name for name, nearest in evidence.tools[:3]
    ]
    return Advice(text, f"Asked for: {', '.join(named)}." if named else "Unknown tools.")


def _look_at(evidence: Evidence) -> Advice:
    text = "Show the field in the prompt's example, or let the schema do without it."
    places = [f"{at or '/'} ({code}, {seen})" for at, code, seen in evidence.pointers[:3]]
    told = f"Answers fail at {', '.join(places)}." if places else "Answers break the schema."
    return Advice(text, told)

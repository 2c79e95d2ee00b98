"""Rules, looks and incidents in the words of the pages."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Protocol

from diagnostics.alerting.rules import MONEY_UNITS, terms_of
from diagnostics.alerting.signals import RATIOS, DetectorEvaluation, Signal, Slice, noun_of
from diagnostics.figures import (
    Tone,
    count,
    duration,
    listed,
    percent,
    plural,
    rate_percent,
    write_usd,
)
from diagnostics.selection.query_language import write_term
from diagnostics.verdict.wording import part_words

DETECTORS: Mapping[str, tuple[str, str]] = {
    "change": (
        "change detection",
        "fires when the signal is significantly worse than its baseline of the last 14 days",
    ),
    "threshold": (
        "threshold",
        "fires when the share is significantly above the limit: at least 20 calls, 5 of them bad,"
        " and the lower bound of the 99 % interval above it",
    ),
    "count": ("count", "fires at this count within the time"),
    "absent": ("missing data", "fires when nothing has arrived for this long"),
}
"""What a detector is called, and how it judges."""
# Colours tell how an incident stands; its severity is a word.
STATES: Mapping[str, tuple[Tone, str]] = {
    "open": ("bad", "open"),
    "acknowledged": ("warn", "acknowledged"),
    "resolved": ("good", "resolved"),
}
EVALUATIONS: Mapping[str, tuple[Tone, str]] = {
    "quiet": ("good", "quiet"),
    "fires": ("bad", "fires"),
    "clears": ("good", "clears"),
    "no_data": ("quiet", "no calls"),
}
TRANSITION_WORDS: Mapping[str, tuple[Tone, str]] = {
    "fired": ("bad", "Fired"),
    "joined": ("bad", "Series added"),
    "worsened": ("bad", "Severity raised"),
    "acknowledged": ("warn", "Acknowledged"),
    "slice_cleared": ("good", "Series recovered"),
    "cleared": ("good", "Resolved automatically"),
    "resolved": ("good", "Resolved"),
    "reopened": ("bad", "Reopened"),
}
DELIVERY_WORDS: Mapping[str, tuple[Tone, str]] = {
    "queued": ("live", "waiting"),
    "sent": ("good", "sent"),
    "failed": ("bad", "failed"),
    "suppressed": ("quiet", "suppressed"),
    "digested": ("quiet", "in a digest"),
}


MOST_NODES = 3
"""Nodes of one model that a name does not hold."""
PARTS = {*RATIOS, Signal.LATENCY_P95, Signal.DEGRADED_COUNT}
"""Signals that count some calls or runs out of all of them."""
LEAST_GAP = 0.0005
"""By which the lower bound of a rate differs from the rate, as they are printed."""


def scope_words(text: str) -> list[str]:
    """Write the conditions of a kept filter as they are typed; none: all calls."""
    return [write_term(term) for term in terms_of(text)]


def slice_words(values: Slice) -> str:
    """Name a slice: `acme/m-1, plan in prod`, or `source planner`."""
    if "source" in values:
        return f"source {values['source'] or 'unknown'}"
    model = "/".join(values[name] or "unknown" for name in ("provider", "model") if name in values)
    node = (values.get("node") or "").replace("_", " ")
    place = f"in {values['environment']}" if values.get("environment") else ""
    rest = " ".join(part for part in (node, place) if part)
    nothing = "unknown environment" if "environment" in values else "all calls"
    return ", ".join(part for part in (model, rest) if part) or nothing


def name_slices(slices: Iterable[Slice]) -> list[str]:
    """Name slices, the nodes of one model together: `acme/m-1, plan and next step in prod`."""
    nodes: dict[tuple[tuple[str, str | None], ...], list[str]] = {}
    for values in slices:
        rest = tuple((name, value) for name, value in values.items() if name != "node")
        known = nodes.setdefault(rest, [])
        if (node := values.get("node") or "") not in known:
            known.append(node)
    return [slice_words({**dict(rest), "node": _joined(names)}) for rest, names in nodes.items()]


def widest_of(slices: Iterable[str]) -> list[str]:
    """Return the names of slices without those that are part of another one."""
    every = list(dict.fromkeys(slices))
    wider = tuple(f"{name}{more}" for name in every for more in (", ", " in "))
    return [name for name in every if not name.startswith(wider)]


def _joined(names: Sequence[str]) -> str:
    return " and ".join(names) if len(names) < MOST_NODES else listed(names, MOST_NODES - 1)


def evaluation_words(signal: str, k: int, n: int, value: float, bound: float) -> str:
    text = _counted(signal, k, n)
    if signal not in RATIOS:
        # A limit of latency is kept as the share of calls that may be slower.
        limit = percent(bound) if signal == Signal.LATENCY_P95 else figure_words(signal, bound)
        return f"{text}; limit {limit}" if bound else text
    share = k / n if n else value
    text += f", {rate_percent(share)}"
    if bound > 1:
        return f"{text}; evidence {value:.1f}, alarm at {bound:.1f}"
    if not bound:
        return text
    low = f"; lower bound {percent(value)}" if abs(value - share) >= LEAST_GAP else ""
    return f"{text}{low}; limit {percent(bound)}"


def found_words(signal: str, result: DetectorEvaluation) -> str:
    """Write the share or the number that fired, beside its baseline."""
    text = _counted(signal, result.k, result.n)
    if signal in RATIOS and result.n:
        text = part_words(result.k / result.n, result.n, noun_of(signal))
    return text if result.baseline is None else f"{text} (baseline {rate_percent(result.baseline)})"


def _counted(signal: str, k: int, n: int) -> str:
    if not n or signal not in PARTS:
        return figure_words(signal, k)
    slower = " slower" if signal == Signal.LATENCY_P95 else ""
    return f"{count(k)} of {plural(n, noun_of(signal))}{slower}"


def figure_words(signal: str, number: float) -> str:
    """Write a number that is no share as its signal measures it: time, money, or so many."""
    if signal == Signal.SOURCE_SILENT:
        return duration(number)
    if signal == Signal.RETRY_MONEY:
        return write_usd(Decimal(round(number)) / MONEY_UNITS)
    return f"{number:,.10g}"


class RuleParts(Protocol):
    signal: str
    detector: str
    parameters: Any
    group_by: Any


def rule_words(rule: RuleParts) -> str:
    by = ", ".join(rule.group_by)
    text = condition_words(rule)
    return f"{text}, by {by}" if by else text


def condition_words(rule: RuleParts) -> str:
    figures: Mapping[str, Any] = rule.parameters
    signal = Signal(rule.signal).words
    text = f"{signal}, {DETECTORS[rule.detector][0]}"
    if rule.detector == "count":
        within = duration(figures.get("seconds", 0))
        unit = "$" if rule.signal == Signal.RETRY_MONEY else ""
        text = f"{signal}: ≥ {unit}{figures.get('count', 0):,.10g} in {within}"
    elif rule.detector == "threshold":
        text = f"{signal} {limit_words(rule.signal, figures.get('limit', 0))}"
    elif rule.detector == "absent":
        text = f"{signal} for {duration(figures.get('seconds', 0))}"
    return text


def limit_words(signal: str, limit: float) -> str:
    if signal == Signal.LATENCY_P95:
        return f"above {limit:,.0f} ms"
    side = "below" if signal == Signal.REPAIR_SUCCESS_RATIO else "above"
    return f"{side} {limit * 100:g}\u202f%"

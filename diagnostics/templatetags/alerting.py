"""The rules of a model as template tags: a page needs no view that knows of rules."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django import template
from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.db.models.functions import JSONObject
from django.template import Context

from diagnostics.alerting.rule_models import AlertRule, AlertState, Evaluation, live_rules
from diagnostics.alerting.rules import terms_of
from diagnostics.alerting.signals import RATIOS, Signal
from diagnostics.alerting.states import ON, AlertPhase
from diagnostics.alerting.wording import condition_words, figure_words
from diagnostics.figures import Tone, count, percent
from diagnostics.selection.fields import SERIES_FIELDS
from diagnostics.selection.query_language import write_term
from diagnostics.selection.selection import keeps_all
from diagnostics.web.model_links import model_url

COUNTED = {*RATIOS, Signal.LATENCY_P95}
"""Signals that say nothing without a call."""


@dataclass(frozen=True, slots=True)
class WatchingRule:
    """A rule as the page of a model shows it; `current` is empty without a recent call."""

    rule: AlertRule
    says: str
    current: str
    state: tuple[Tone, str]


class WatchedModels:
    """The rules of a project and how their series stand; read once, with two queries."""

    def __init__(
        self, project_id: int, values: Mapping[str, str | None], *, only_fired: bool = False
    ) -> None:
        """Read the rules that are enabled, and the last evaluation of each of their series.

        Only of series that have these values, or leave them open. With `only_fired`, of rules
        that people made, and of their series that fire.
        """
        rules = live_rules(project_id).filter(is_enabled=True)
        states = _states(project_id)
        for name, value in values.items():
            states = states.filter(~Q(slice__has_key=name) | Q(**{f"slice__{name}": value}))
        if only_fired:
            rules = rules.filter(standard=None)
            states = states.filter(rule__standard=None, state__in=ON)
        self._rules = list(rules)
        self._states: dict[int, list[AlertState]] = defaultdict(list)
        for row in states:
            self._states[row.rule_id].append(row)

    def rules_of(self, provider: str | None, model: str | None) -> Sequence[WatchingRule]:
        """Return the rules that watch a model, those that fire first."""
        values = {"provider": provider, "model": model}
        rules = [rule for rule in self._rules if keeps_all(terms_of(rule.filter), values)]
        shown = []
        for rule in rules:
            rows = [
                row
                for row in self._states[rule.pk]
                if all(row.slice.get(name, value) == value for name, value in values.items())
            ]
            shown.append(_watching(rule, rows))
        return sorted(shown, key=lambda rule: rule.state[0] != "bad")


def _states(project_id: int) -> QuerySet[AlertState]:
    latest = Evaluation.objects.filter(state=OuterRef("pk")).order_by("-slot")
    counts = JSONObject(k="k", n="n", value="value")
    rows = AlertState.objects.filter(rule__project_id=project_id, rule__is_enabled=True)
    counted = Subquery(latest.values(found=counts)[:1])
    return rows.defer("memory", "detector_state").annotate(found=counted)


def _watching(rule: AlertRule, rows: Sequence[AlertState]) -> WatchingRule:
    firing = [row for row in rows if row.state in ON]
    state: tuple[Tone, str] = ("bad", "firing") if firing else ("good", "ok")
    known = [row for row in firing or rows if row.state != AlertPhase.NO_DATA]
    counts: Iterable[Mapping[str, Any]] = (row.found or {} for row in known)  # type: ignore[attr-defined] # annotated
    current = max(counts, key=_share, default={})
    words = _current(rule, current)
    if not known or (rule.signal in COUNTED and rule.detector != "change" and not words):
        state = ("quiet", "no data")
    # Beside the series.
    narrowed = (term for term in terms_of(rule.filter) if term.field not in SERIES_FIELDS)
    says = ", ".join([condition_words(rule), *map(write_term, narrowed)])
    return WatchingRule(rule, says, words, state)


def _share(counts: Mapping[str, Any]) -> float:
    k, n, value = (float(counts.get(name) or 0) for name in ("k", "n", "value"))
    return k / n if n else value


def _current(rule: AlertRule, counts: Mapping[str, Any]) -> str:
    if not counts or rule.detector == "change":
        return ""
    if rule.signal not in COUNTED:
        return figure_words(rule.signal, counts["value"])
    if not counts["n"]:
        return ""
    share, of = _share(counts), f"of {count(counts['n'])}"
    if rule.signal == Signal.LATENCY_P95:
        return f"{percent(share)} {of} calls slower"
    return f"{percent(1 - share if rule.signal == Signal.REPAIR_SUCCESS_RATIO else share)} {of}"


register = template.Library()
READ = "watched_models"


@register.inclusion_tag("models/_thresholds.html", takes_context=True)
def thresholds(context: Context, provider: str | None, model: str | None) -> Mapping[str, object]:
    page = f"{model_url(provider, model)}#thresholds"
    query = urlencode({"provider": provider or "-", "model": model or "-", "next": page})
    values = {"provider": provider, "model": model}
    rules = WatchedModels(context["project"].pk, values).rules_of(provider, model)
    return {"rules": rules, "query": query}


@register.inclusion_tag("models/_row_thresholds.html", takes_context=True)
def row_thresholds(
    context: Context, provider: str | None, model: str | None
) -> Mapping[str, object]:
    """Show the thresholds of a model that fire in its row; its page has the others."""
    # Read once for all rows of a page.
    kept: WatchedModels | None = context.render_context.get(READ)
    if kept is None:
        project_id = context["project"].pk
        kept = context.render_context[READ] = WatchedModels(project_id, {}, only_fired=True)
    return {"rules": [rule for rule in kept.rules_of(provider, model) if rule.state[0] == "bad"]}

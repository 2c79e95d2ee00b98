"""The forms of alert rules and silences, in the units that people think in: percent, minutes."""

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qsl, urlencode

from django import forms

from diagnostics.alerting.notification_models import Channel
from diagnostics.alerting.rule_models import AlertRule, live_rules
from diagnostics.alerting.rules import (
    ALLOWED,
    LONGEST_FILTER,
    SILENCED_BY,
    FilterError,
    RuleFields,
    check_filter,
    check_scope,
    figure_of,
    more_scope,
)
from diagnostics.alerting.rules import DETECTORS as ABLE
from diagnostics.alerting.signals import RATIOS, Signal
from diagnostics.alerting.states import NoData, Severity
from diagnostics.alerting.wording import DETECTORS, limit_words, scope_words
from diagnostics.redaction.redactor import SecretTypedError, refuse_secret
from diagnostics.selection.conditions import known_values
from diagnostics.selection.fields import LONGEST_VALUE, SERIES_FIELDS, UNKNOWN
from diagnostics.web.edit_forms import EditForm, LocalTimeField, OwnZoneField, read_local_time
from failsoft.events import ParseErrorType

MOST_VALUES = 200
"""Of each list to pick from, the newest."""
COVERS_ALL = "covers_all"
"""In a form: its reader has seen that it is about all calls."""
PICKED = (*SERIES_FIELDS, "kind", "source", "prompt_version")
TRANSPORT = ("timeout", "provider_error", "rate_limited")
"""Calls without an answer, as the filter `kind` names them."""
PERCENT = 100
MINUTE = 60
MINUTES = {
    "for_minutes": "for_seconds",
    "clear_minutes": "clear_seconds",
    "renotify_minutes": "renotify_seconds",
    "escalate_minutes": "escalate_seconds",
}
NAMES: Mapping[str, str] = {**MINUTES, "minutes": "seconds"}
BOXES: Mapping[str, str] = {name: box for box, name in NAMES.items()}
"""The boxes that are in minutes, by the fields and parameters in seconds."""
FIGURES: Mapping[str, tuple[str, ...]] = {
    detector: tuple(BOXES.get(name, name) for name in names) for detector, names in ALLOWED.items()
}
"""Which boxes each detector reads."""


class PickField(forms.CharField):
    """One value of many, exact; any text is taken, so that nothing kept is lost."""

    def __init__(self, **more: Any) -> None:
        super().__init__(required=False, max_length=LONGEST_VALUE, widget=forms.Select, **more)

    def offer(self, values: Sequence[str], chosen: object) -> None:
        shown = dict.fromkeys([*values, *([str(chosen)] if chosen else [])])
        named = [(value, "unknown" if value == UNKNOWN else value) for value in shown]
        self.widget.choices = [("", "any"), *named]


class ScopeForm(forms.Form):
    """Which calls: exact values to pick, or a filter as it is typed in the filter bar."""

    environment = PickField()
    node = PickField()
    provider = PickField()
    model = PickField()
    kind = PickField(label="Kind of failure")
    filter = forms.CharField(
        label="Filter",
        required=False,
        max_length=LONGEST_FILTER,
        help_text="As in the filter bar: model:haiku matches a part, model:=gpt-4.1 all of it,"
        " -env:dev excludes.",
    )

    def __init__(self, project_id: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        known = known_values(project_id, MOST_VALUES)
        known = {**known, "kind": [*ParseErrorType, *TRANSPORT]}
        for name, field in self.fields.items():
            if isinstance(field, PickField):
                chosen = self[name].value()
                field.offer([v if v is not None else UNKNOWN for v in known.get(name, ())], chosen)

    @property
    def picks(self) -> list[forms.BoundField]:
        return [self[name] for name in SERIES_FIELDS]

    @property
    def text(self) -> str:
        """The scope as a filter, as it is kept."""
        if self.is_bound:
            return str(self.cleaned_data.get("filter") or "")
        picked = {name: self.initial[name] for name in PICKED if self.initial.get(name)}
        return urlencode({**picked, "q": self.initial.get("filter") or ""})

    @property
    def scope(self) -> list[str]:
        """Its conditions, as they are typed; none: all calls."""
        return scope_words(self.text)

    def more_scope(self) -> tuple[str, ...]:
        return SILENCED_BY

    def check_scope(self, text: str) -> str:
        """Return a filter as it is kept; FilterError."""
        return check_filter(text, self.more_scope())

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        # A list that is always shown is never left out in silence.
        names = dict.fromkeys((*SERIES_FIELDS, "prompt_version", *self.more_scope()))
        picked = {name: cleaned[name] for name in names if cleaned.get(name)}
        try:
            typed = dict(parse_qsl(self.check_scope(str(cleaned.get("filter") or ""))))
            for name in picked.keys() & typed.keys():
                self.add_error("filter", f"{name} is set twice.")
            cleaned["filter"] = refuse_secret(self.check_scope(urlencode({**typed, **picked})))
        except (FilterError, SecretTypedError) as error:
            cleaned["filter"] = ""
            words = str(error)
            self.add_error("filter", f"{words[:1].upper()}{words[1:]}.")
        return cleaned


def scope_of(text: str) -> dict[str, str]:
    """Return a kept filter as a scope form shows it."""
    fields = dict(parse_qsl(text))
    return {**{k: v for k, v in fields.items() if k in PICKED}, "filter": fields.get("q", "")}


def _figure(label: str, help_text: str = "", least: float = 0) -> forms.FloatField:
    box = forms.NumberInput(attrs={"min": least})
    return forms.FloatField(label=label, required=False, help_text=help_text, widget=box)


def _bounds(signal: str, detector: str, box: str) -> tuple[float, float]:
    above, below, _ = figure_of(signal, detector, NAMES.get(box, box))
    if box == "minutes":
        return (above + 1) / MINUTE, (below - 1) / MINUTE
    unit = PERCENT if _is_percent(signal, box) else 1
    return above * unit, below * unit


def _is_percent(signal: str, box: str) -> bool:
    return box == "limit" and signal in RATIOS


def _minutes(label: str, usual: int | None = None) -> forms.FloatField:
    # As bounded as over the API, and in fractions: what was stored there can be saved here.
    return forms.FloatField(label=label, min_value=0, initial=usual, required=False)


def _channels(label: str, help_text: str = "") -> forms.MultipleChoiceField:
    box = forms.CheckboxSelectMultiple
    return forms.MultipleChoiceField(label=label, required=False, widget=box, help_text=help_text)


LIMITS: Mapping[str, tuple[float, str]] = {
    signal: (_bounds(signal, "threshold", "limit")[1], limit_words(signal, usual))
    for signal in Signal
    for usual in [figure_of(signal, "threshold", "limit").usual]
}
"""The upper bound of the limit of each signal, and what an empty box means."""


class RuleForm(EditForm, ScopeForm):
    optional = (
        *("for_minutes", "clear_minutes", "no_data", "is_latching", "renotify_minutes"),
        *("escalate_minutes", "escalation"),
    )
    usual: Collection[object] = (None, "", "0", 0, False, [], NoData.CLEAR)

    name = forms.CharField(max_length=200)
    source = PickField()
    prompt_version = PickField(label="Prompt version")
    signal = forms.ChoiceField(
        choices=[(signal.value, signal.words[:1].upper() + signal.words[1:]) for signal in Signal]
    )
    detector = forms.ChoiceField(
        choices=[(name, words[:1].upper() + words[1:]) for name, (words, _) in DETECTORS.items()]
    )
    limit = forms.FloatField(
        label="Limit (%; latency: ms)",
        help_text="Empty: the value in grey.",
        required=False,
        # Its upper bound and its default in the browser are those of the chosen signal.
        widget=forms.NumberInput(attrs={"min": 0, "data-limits": json.dumps(LIMITS)}),
    )
    count = _figure("Count (retry cost: US$)", "Empty: 3 degraded runs, 1 of anything else.")
    minutes = _figure("Window (min)", least=1)
    group_by = forms.MultipleChoiceField(
        label="Group by",
        required=False,
        choices=[(name, name) for name in SERIES_FIELDS],
        widget=forms.CheckboxSelectMultiple,
        help_text="Each combination is evaluated separately.",
    )
    severity = forms.ChoiceField(
        choices=[(name, name.capitalize()) for name in map(str, Severity)], initial=Severity.WARNING
    )
    for_minutes = _minutes("For (min)", 0)
    clear_minutes = _minutes("Clear after (min)", 0)
    no_data = forms.ChoiceField(
        label="No data",
        choices=[("clear", "Resolve"), ("keep", "Keep state"), ("fire", "Alert")],
        initial=NoData.CLEAR,
    )
    is_latching = forms.BooleanField(label="Stay open until resolved by a person", required=False)
    routing = _channels("Notify", "None selected: all channels of the project.")
    renotify_minutes = _minutes("Re-notify every (min)")
    escalate_minutes = _minutes("Escalate after (min)")
    escalation = _channels("Escalate to")

    def __init__(self, project_id: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(project_id, *args, **kwargs)
        if (signal := self["signal"].value()) in LIMITS:
            self.fields["limit"].widget.attrs["placeholder"] = LIMITS[signal][1]
        rows = Channel.objects.filter(project_id=project_id).order_by("name")
        choices = [(str(one.pk), f"{one}{'' if one.enabled else ' (disabled)'}") for one in rows]
        for name in ("routing", "escalation"):
            self.fields[name].choices = choices  # type: ignore[attr-defined] # both have choices

    def more_scope(self) -> tuple[str, ...]:
        return more_scope(*self._asked())

    def check_scope(self, text: str) -> str:
        """Return a filter as it is kept; the error says which detectors know prompt versions."""
        return check_scope(text, *self._asked())

    def _asked(self) -> tuple[object, object]:
        return self.cleaned_data.get("signal"), self.cleaned_data.get("detector")

    def clean(self) -> dict[str, Any]:
        cleaned: dict[str, Any] = super().clean() or {}
        signal = cleaned.get("signal")
        able = ABLE[Signal(signal)] if signal else ()
        if signal and cleaned.get("detector") not in able:
            words = " or ".join(DETECTORS[name][0] for name in able)
            self.add_error("detector", f"{Signal(signal).words} works with {words} only.")
        elif signal:
            for box in FIGURES[cleaned["detector"]]:
                check_figure(self, cleaned["detector"], box)
        return cleaned

    def figures(self) -> list[tuple[forms.BoundField, str]]:
        """Return the boxes of figures, each with the classes of the detectors that read it."""
        boxes = dict.fromkeys(box for read in FIGURES.values() for box in read)
        return [
            (self[box], " ".join(f"for-{name}" for name in FIGURES if box in FIGURES[name]))
            for box in boxes
        ]

    def given(self) -> dict[str, Any]:
        """Return what a rule is told, in its own units."""
        cleaned = self.cleaned_data
        fields = {name: cleaned[name] for name in RuleFields.model_fields if name in cleaned}
        for field in ("routing", "escalation"):
            fields[field] = [int(number) for number in cleaned[field]]
        for field, name in MINUTES.items():
            usual = RuleFields.model_fields[name].default
            minutes = cleaned.get(field)
            fields[name] = usual if minutes is None else round(minutes * MINUTE)
        fields["parameters"] = {
            NAMES.get(box, box): round(value * MINUTE)
            if box == "minutes"
            else value / (PERCENT if _is_percent(cleaned["signal"], box) else 1)
            for box in FIGURES[cleaned["detector"]]
            if (value := cleaned.get(box)) is not None
        }
        return fields

    def add_faults(self, faults: dict[str, str]) -> None:
        for name, why in faults.items():
            bare = name.removeprefix("parameters.")
            box = BOXES.get(bare, bare)
            self.add_error(box if box in self.fields else None, why)


def initial_of(row: AlertRule) -> dict[str, Any]:
    boxes = RuleForm.base_fields
    initial = {name: getattr(row, name) for name in RuleFields.model_fields if name in boxes}
    initial |= scope_of(row.filter)
    for field, name in MINUTES.items():
        seconds = getattr(row, name)
        initial[field] = None if seconds is None else f"{seconds / MINUTE:.10g}"
    for box in FIGURES[row.detector]:
        if NAMES.get(box, box) in row.parameters:
            kept = row.parameters[NAMES.get(box, box)]
            shown = kept / MINUTE if box == "minutes" else kept
            initial[box] = f"{shown * PERCENT if _is_percent(row.signal, box) else shown:.10g}"
    return initial


def check_figure(form: forms.Form, detector: str, box: str) -> None:
    """Say beside a box, in its unit, between which bounds its figure must be."""
    signal, value = form.cleaned_data["signal"], form.cleaned_data.get(box)
    low, high = _bounds(signal, detector, box)
    if value is None:
        return
    if box == "minutes":
        if not low <= value <= high:
            form.add_error(box, f"From {low:g} to {high:,g} min.")
    elif not low < value < high:
        unit = " %" if _is_percent(signal, box) else ""
        form.add_error(box, f"Above {low:g}{unit} and below {high:,.13g}{unit}.")


class SilenceForm(ScopeForm):
    starts_at = LocalTimeField(label="From")
    tz = OwnZoneField()
    hours = forms.IntegerField(label="Duration (h)", min_value=1, max_value=24 * 30, initial=4)
    reason = forms.CharField(max_length=200, required=False)

    def __init__(self, project_id: int, *args: Any, **kwargs: Any) -> None:
        super().__init__(project_id, *args, **kwargs)
        self.fields["rule"] = forms.ModelChoiceField(
            live_rules(project_id), required=False, empty_label="All rules"
        )

    def clean_tz(self) -> str:
        """Read the local time in its zone, which comes after it."""
        zone = str(self.cleaned_data["tz"])
        try:
            self.begins_at = read_local_time(self.cleaned_data.get("starts_at", ""), zone)
        except ValueError:
            self.add_error("starts_at", "Not a valid time.")
        return zone

"""Fields that several forms of alerts ask for."""

from collections.abc import Sequence
from typing import Any
from urllib.parse import parse_qsl, urlencode

from django import forms

from diagnostics.alerting.rules import LONGEST_FILTER, SILENCED_BY, FilterError, check_filter
from diagnostics.alerting.wording import scope_words
from diagnostics.redaction.redactor import SecretTypedError, refuse_secret
from diagnostics.selection.conditions import known_values
from diagnostics.selection.fields import LONGEST_VALUE, SERIES_FIELDS, UNKNOWN
from failsoft.events import ParseErrorType

MOST_VALUES = 200
"""Of each list to pick from, the newest."""
COVERS_ALL = "covers_all"
"""In a form: its reader has seen that it is about all calls."""
PICKED = (*SERIES_FIELDS, "kind", "source", "prompt_version")
TRANSPORT = ("timeout", "provider_error", "rate_limited")
"""Calls without an answer, as the filter `kind` names them."""


class PickField(forms.CharField):
    """One value of many, exact; any text is taken, so that nothing kept is lost."""

    def __init__(self, **more: Any) -> None:  # noqa: ANN401 - Django's
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

    def __init__(self, project_id: int, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - Django's
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
        """Return the fields beside those of series that the scope may name."""
        return SILENCED_BY

    def check_scope(self, text: str) -> str:
        """Return a filter as it is kept; FilterError."""
        return check_filter(text, self.more_scope())

    def clean(self) -> dict[str, Any]:
        """Put what was picked and what was typed into one filter."""
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

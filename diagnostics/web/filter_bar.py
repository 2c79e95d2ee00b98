"""The filter bar of the pages: what can be set, what is set, and what to do with it.

A view reads `read_filters(request)`, merges `filter_frame(...)` into its context and its
page begins with `{% include "console/_filters.html" %}` inside `#page`.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode
from zoneinfo import ZoneInfo

from django.urls import reverse

from diagnostics.accounts.models import SAVED_PAGES, SavedView
from diagnostics.figures import shorten
from diagnostics.selection.conditions import known_values
from diagnostics.selection.fields import (
    DEFAULT_RANGE,
    FIELDS,
    NULLABLE,
    OUTCOMES,
    RANGES,
    SERVED,
    SHORTEST,
    UNKNOWN,
)
from diagnostics.selection.query_language import LONGEST_QUERY, write_query
from diagnostics.selection.selection import NARROWED, NOTHING, Selection, read_selection
from diagnostics.web.pages import ConsoleRequest
from failsoft.events import CallErrorType, EventKind, ParseErrorType

PICKED = (
    "environment",
    "node",
    "provider",
    "model",
    "source",
    "prompt_version",
    "schema",
    "release",
    SERVED,
    "region",
    "credential",
    "kind",
    "outcome",
)
"""Fields with a list to pick from; `attempt` has a box, others are typed into `q`."""
UNTOLD_ENDS = "the end of a run does not say who answered: degraded runs are not counted"
KINDS = (*ParseErrorType, *CallErrorType, *EventKind)
ZONES = (
    *("UTC", "America/Los_Angeles", "America/New_York", "America/Sao_Paulo", "Europe/London"),
    *("Europe/Berlin", "Europe/Kyiv", "Asia/Kolkata", "Asia/Shanghai"),
    *("Asia/Tokyo", "Australia/Sydney"),
)
# Where signing in and the account page leave the profile's zone.
ZONE = "zone"
EXPORTS = {"csv": "CSV", "ndjson": "JSON Lines"}
LOCAL = "%Y-%m-%dT%H:%M"
LONGEST_LABEL = 48
MINUTE = timedelta(minutes=1)
SHOWN_VIEWS = 12
Choice = tuple[str, str, bool]


@dataclass(frozen=True, slots=True)
class FilterField:
    """A list to pick from: (value, label, is it chosen).

    A label that is its value is written once: what a list shows has no double spaces.
    """

    name: str
    label: str
    choices: Sequence[Choice]


def read_filters(request: ConsoleRequest, default_range: str = DEFAULT_RANGE) -> Selection:
    """Read the filters of a page, times in the reader's zone unless `tz` says another."""
    return read_selection(request.GET.dict(), reader_zone(request), default_range)


def reader_zone(request: ConsoleRequest) -> str:
    """Return the zone of the reader's profile; empty where the browser's is to be used."""
    return str(request.session.get(ZONE) or "")


def filter_frame(
    request: ConsoleRequest,
    selection: Selection,
    *,
    choices: Mapping[str, Sequence[str | None]] | None = None,
    applies: Collection[str] | None = None,
    about: Selection | None = None,
    export: str | None = "events",
    exported: Mapping[str, str] | None = None,
    kept: Sequence[str] = (),
    notice: str | None = NARROWED,
    covers: tuple[datetime, datetime] | None = None,
) -> dict[str, Any]:
    """Return what `console/_filters.html` needs, to be merged into a context.

    `choices`: values by field (default: the project's). `applies`: fields that the page applies
    (None: all), other chips are marked. `about`: what is shared, if narrower. `kept`: the
    page's own parameters, `exported` those that its export takes. `notice` and `covers`: shown
    if the counted times differ.
    """
    own = {name: request.GET[name] for name in kept if request.GET.get(name)}
    known = known_values(request.project.pk) if choices is None else choices
    subject = replace(about or selection, default_range=DEFAULT_RANGE)
    # Events know every filter; any other list those that its page applies.
    taken = subject if export == "events" or applies is None else subject.only(applies)
    views = SavedView.open_to(request.project.pk, request.user)
    bar = {
        "action": request.path,
        "ranges": list(_ranges(selection, own)),
        **_times(selection),
        "fields": [_field(name, selection, known.get(name, ())) for name in PICKED],
        "attempt": selection.filters.get("attempt") or "",
        "hidden": [*_hidden(selection), *own.items()],
        "q": _typed(request, selection),
        "keys": [f"{SHORTEST.get(name, name)}:" for name in FIELDS],
        "chips": list(_chips(selection, own, applies)),
        "clear": _joined(replace(selection, filters={}, text=NOTHING).query(), own),
        "faults": selection.faults,
        "notice": "; ".join(_notices(selection, notice, covers)),
        "applied_at": f"{reverse('failures')}?{subject.query()}",
        "alert": f"{reverse('alert_rule_new')}?{subject.query()}",
        "compare": f"{reverse('compare')}?{subject.query()}",
        "exports": list(_exports(export, taken, exported or {})) if export else [],
        "page": _saveable_page(request),
        "query": _joined(selection.query(), own),
        "views": [(view, view.address) for view in views[:SHOWN_VIEWS]],
        "zones": ZONES,
    }
    return {"selection": selection, "bar": bar}


def _times(selection: Selection) -> dict[str, Any]:
    return {
        "begin": _local(selection, "begin"),
        "end": _local(selection, "end"),
        "zone": selection.zone if selection.zone != selection.home else "",
        "home": selection.home or "UTC",
        "is_custom": selection.is_custom,
        "range_words": selection.range_words,
        "seconds": 0 if selection.is_custom else round(selection.span.total_seconds()),
    }


def _saveable_page(request: ConsoleRequest) -> str | None:
    """Name the page where its address can be kept as a view."""
    match = request.resolver_match
    is_saveable = match and match.view_name in SAVED_PAGES and not match.kwargs
    return match.view_name if match and is_saveable else None


def _typed(request: ConsoleRequest, selection: Selection) -> str:
    """Return `q` as it is understood; with its fault, to be put right, where it is not."""
    typed = " ".join(request.GET.get("q", "").split())[:LONGEST_QUERY]
    return typed if "q" in selection.faults else write_query(selection.text)


def _ranges(selection: Selection, own: Mapping[str, str]) -> Iterator[tuple[str, str, bool]]:
    for name in RANGES:
        is_chosen = name == selection.range and not selection.is_custom
        query = _joined(selection.query(range=name), own)
        yield f"{name[:-1]} {name[-1]}", query, is_chosen


def _chips(
    selection: Selection, own: Mapping[str, str], applies: Collection[str] | None
) -> Iterator[Mapping[str, Any]]:
    """Yield each filter that is set, and the query string without it.

    A term of `q` names its field itself.
    """
    for place, chip in enumerate(selection.chips()):
        is_term = place >= len(selection.filters)
        yield {
            "field": "" if is_term else chip.field,
            "text": chip.text,
            "query": _joined(chip.without, own),
            "is_applied": applies is None or chip.field in applies,
        }


def _local(selection: Selection, end: str) -> str:
    at = getattr(selection, end)
    return at.astimezone(ZoneInfo(selection.zone)).strftime(LOCAL) if at else ""


def _field(name: str, selection: Selection, known: Sequence[str | None]) -> FilterField:
    fixed: Mapping[str, Sequence[str]] = {"kind": KINDS, "outcome": list(OUTCOMES)}
    is_set = name in selection.filters
    chosen = selection.filters.get(name)
    values = list(dict.fromkeys([*fixed.get(name, known), *([chosen] if is_set else [])]))
    shown = [value for value in values if value is not None or name in NULLABLE]
    return FilterField(
        name,
        name.replace("_", " "),
        [
            (
                UNKNOWN if value is None else str(value),
                "unknown" if value is None else _label(name, value),
                is_set and value == chosen,
            )
            for value in shown
        ],
    )


def _label(name: str, value: str) -> str:
    words = value.replace("_", " ") if name in {"kind", "outcome"} else value
    words = " ".join(words.split())
    return shorten(words, LONGEST_LABEL)


def _hidden(selection: Selection) -> Iterator[tuple[str, str]]:
    """Carry on what the form has no box for."""
    if selection.range != selection.default_range and not selection.is_custom:
        yield "range", selection.range
    for name, value in selection.filters.items():
        if name not in PICKED and name != "attempt":
            yield name, UNKNOWN if value is None else value


def _notices(
    selection: Selection, narrowed: str | None, covers: tuple[datetime, datetime] | None
) -> Iterator[str]:
    if narrowed and (selection.scans_events and selection.span.days > RANGES["7d"].days):
        yield narrowed
    if covers and _is_moved(selection, *covers):
        yield f"counting {selection.words_of(*covers)}: finer counts are not stored"
    elif covers and selection.needs_versions:
        yield "counted in whole hours"
    if any(term.field == SERVED for term in selection.terms):
        yield UNTOLD_ENDS
    kinds = (term.value for term in selection.terms if term.field == "kind")
    if unknown := [kind for kind in kinds if kind and kind not in KINDS]:
        yield f"no kind is called {unknown[0]}; kinds are {', '.join(dict.fromkeys(KINDS))}"


def _is_moved(selection: Selection, since: datetime, until: datetime) -> bool:
    """Whether times were asked for, and others are counted; a preset is a length."""
    end = selection.end or until
    ends = (selection.since(end), since), (end, until)
    return selection.is_custom and any(abs(wanted - counted) >= MINUTE for wanted, counted in ends)


def _exports(name: str, selection: Selection, own: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    # An export without a range, or with an end alone, would be of everything before it.
    is_open = selection.begin is None and selection.range == DEFAULT_RANGE
    query = _joined(selection.query(), {**({"range": DEFAULT_RANGE} if is_open else {}), **own})
    for ending, label in EXPORTS.items():
        yield label, f"{reverse('export', args=[name, ending])}?{query}"


def _joined(query: str, own: Mapping[str, str]) -> str:
    parts = [query, urlencode(own)] if own else [query]
    return "&".join(part for part in parts if part)

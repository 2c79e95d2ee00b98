"""Comparing two sides: is one really worse than the other, and in which way?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl

from django.http import HttpResponse
from django.urls import reverse

from diagnostics import clock
from diagnostics.analysis.statistics import LEAST_TRIALS
from diagnostics.console.comparison import (
    Against,
    Comparison,
    Parts,
    RateDifference,
    Sums,
    add_sums,
    compare,
    names_of,
    parts_of,
    sums_by_version,
)
from diagnostics.console.models_page import failures_url
from diagnostics.figures import read_number, shorten
from diagnostics.ingest.models import reported_deploys
from diagnostics.queries.call_counts import cost_of, count_calls
from diagnostics.queries.models import known_models, sums_between
from diagnostics.rest.exporting import write_csv_file
from diagnostics.selection.conditions import KnownValues, known_values
from diagnostics.selection.query_language import Query, Term, parse_query, write_query
from diagnostics.selection.selection import ROLLUP_FIELDS, Selection, read_selection
from diagnostics.web.charts.scales import Scale, difference_scale
from diagnostics.web.filter_bar import FilterField, filter_frame, read_filters
from diagnostics.web.pages import ConsoleRequest, member_page, respond

PICKS: Mapping[str, Sequence[str]] = {
    "model": ("provider", "model"),
    "prompt": ("prompt_version",),
    "release": ("release",),
}
"""The pickers of each side, and the fields that each sets."""
LABELS = {"model": "Model", "prompt": "Prompt version", "release": "Release"}
KEPT = ("with", "b", "b_from", "b_to", "matched", "deploy", *(f"b_{name}" for name in PICKS))
AXIS_WIDTH = 280
MOST_DEPLOYS = 20
LONGEST_LABEL = 48
PRESETS: Mapping[Against, str] = {
    Against.PERIOD: "Previous period",
    Against.WEEK: "One week earlier",
    Against.DEPLOY: "Before a deploy",
    Against.SAME: "Same time",
    Against.CUSTOM: "Custom time",
}
CSV_COLUMNS = (
    *("rate", "a", "b", "a_share", "a_count", "a_total", "b_share", "b_count", "b_total"),
    *("difference", "low", "high", "a_is"),
)


@dataclass(frozen=True, slots=True)
class AskedComparison:
    selection: Selection
    other: Selection
    against: Against
    is_matched: bool
    parts: Parts


@member_page
def compare_page(request: ConsoleRequest) -> HttpResponse:
    comparison = _read(request)
    known = known_values(request.project.pk)
    window = comparison.parts.a.window
    covers = (window.since, window.until) if comparison.parts.deploy is None else None
    frame = filter_frame(
        request,
        comparison.selection,
        choices=known,
        applies=ROLLUP_FIELDS,
        export=None,
        kept=KEPT,
        covers=covers,
    )
    context = {
        **frame,
        **_story(request.project.pk, comparison),
        **_form(request, comparison, known),
        "section": "compare",
    }
    return respond(request, "compare/compare", context, "Compare")


@member_page
def compare_csv(request: ConsoleRequest) -> HttpResponse:
    comparison = _story(request.project.pk, _read(request))["found"]
    text = "".join(write_csv_file(CSV_COLUMNS, _rows(comparison)))
    answer = HttpResponse(text, content_type="text/csv; charset=utf-8")
    answer["Content-Disposition"] = 'attachment; filename="failsoft-compare.csv"'
    return answer


def describe_comparison(project_id: int, question: AskedComparison) -> dict[str, Any]:
    """Return two sides in numbers and words: their times, the sentence, a row per rate."""
    found: Comparison = _story(project_id, question)["found"]
    windows = zip("ab", (question.parts.a.window, question.parts.b.window), strict=True)
    return {
        "sentence": f"{found.sentence} {found.beside}",
        **{side: {"since": window.since, "until": window.until} for side, window in windows},
        "rows": _rows(found),
    }


def _rows(comparison: Comparison) -> list[Mapping[str, object]]:
    rows: list[Mapping[str, object]] = []
    for rate in (*comparison.rates, *comparison.kinds):
        a, b = rate.a, rate.b
        cells = (
            *(rate.label, *comparison.names, a.share, a.good, a.trials, b.share, b.good, b.trials),
            *(rate.difference, rate.low, rate.high, rate.word),
        )
        rows.append(dict(zip(CSV_COLUMNS, cells, strict=True)))
    return rows


def _read(request: ConsoleRequest) -> AskedComparison:
    selection = _picked(request.GET, read_filters(request), "a")
    return read_comparison(request.project.pk, request.GET, selection)


def read_comparison(
    project_id: int, params: Mapping[str, str], selection: Selection
) -> AskedComparison:
    """Read what a selection is compared with, around the latest deploy unless told."""
    # B has its own query or the filters of A; then its pickers count.
    typed = params.get("b", "")
    parameters = {"from": params.get("b_from", ""), "to": params.get("b_to", ""), "q": typed}
    other = read_selection(parameters, home=selection.zone)
    if not typed.strip():
        other = replace(other, filters=selection.filters, text=selection.text)
    other = _picked(params, other, "b")
    against = _against(params)
    deploy = read_number(params.get("deploy"))
    parts = parts_of(project_id, selection, other, against, clock.now(), deploy)
    return AskedComparison(selection, other, against, params.get("matched") == "on", parts)


def _picked(params: Mapping[str, str], selection: Selection, side: str) -> Selection:
    """Narrow a selection to what the pickers of a side say; they replace its own filters."""
    for name, fields in PICKS.items():
        picked = parse_query(params.get(f"{side}_{name}", "")).terms
        if terms := tuple(term for term in picked if term.field in fields):
            rest = tuple(term for term in selection.text.terms if term.field not in fields)
            filters = {k: v for k, v in selection.filters.items() if k not in fields}
            text = Query((*rest, *terms), selection.text.words)
            selection = replace(selection, filters=filters, text=text)
    return selection


def _against(params: Mapping[str, str]) -> Against:
    """Read which time B has; with filters of its own it is the same, unless told."""
    if params.get("with", "") in set(Against):
        return Against(params["with"])
    is_other = any(params.get(name, "").strip() for name in ("b", *(f"b_{pick}" for pick in PICKS)))
    return Against.SAME if is_other else Against.PERIOD


def _form(
    request: ConsoleRequest, comparison: AskedComparison, known: KnownValues
) -> Mapping[str, Any]:
    project_id, against, deploy = request.project.pk, comparison.against, comparison.parts.deploy
    models = known_models(project_id)
    chosen_b = _picked(request.GET, Selection(), "b")
    now = clock.now()
    deploys = reported_deploys(project_id, until=now)[:MOST_DEPLOYS]
    is_by_deploy = against is Against.DEPLOY
    default = PRESETS[_against({**request.GET.dict(), "with": ""})]
    picked = [field for named in PICKS.values() for field in named]
    typed = comparison.selection.text
    kept = (term for term in typed.terms if term.field not in picked or not _is_pick(term))
    text = Query(tuple(kept), typed.words)
    filters = {k: v for k, v in comparison.selection.filters.items() if k not in picked}
    return {
        "parts": comparison.parts,
        # Whole hours are counted, and the last one has not ended.
        "ends": [min(part.window.until, now) for part in (comparison.parts.a, comparison.parts.b)],
        "other": comparison.other,
        "against": request.GET.get("with", "") and against,
        "presets": [("", f"{default} (default)"), *PRESETS.items()],
        "is_custom": against is Against.CUSTOM,
        "pickers_a": _pickers("a", comparison.selection, known, models),
        "pickers_b": _pickers("b", chosen_b, known, models),
        "deploys": [(row, row == deploy) for row in deploys] if is_by_deploy else (),
        "has_no_deploy": is_by_deploy and deploy is None,
        "is_matched": comparison.is_matched,
        "asked": {name: request.GET.get(name, "")[:1000] for name in KEPT},
        # What the pickers of A send themselves is left out.
        "carried": parse_qsl(replace(comparison.selection, filters=filters, text=text).query()),
        "unread": [
            t.field for t in comparison.other.terms if t not in comparison.other.rollup_terms
        ],
        "failures_a": failures_url(comparison.selection),
        "csv": f"{reverse('compare_csv')}?{request.GET.urlencode()}",
    }


def _is_pick(term: Term) -> bool:
    return term.is_exact and not term.is_negated


def _pickers(
    side: str, selection: Selection, known: KnownValues, models: Sequence[Sequence[str | None]]
) -> list[FilterField]:
    pickers = []
    for name, fields in PICKS.items():
        offered = models if name == "model" else [(value,) for value in known.get(fields[0], ())]
        picked = {t.field: t for t in selection.terms if t.field in fields and _is_pick(t)}
        terms = tuple(picked[field] for field in fields if field in picked)
        chosen = write_query(Query(terms))
        choices = {
            write_query(Query(tuple(map(Term, fields, values)))): _label(values)
            for values in offered
        }
        if chosen:
            choices.setdefault(chosen, _label([term.value for term in terms]))
        shown = [(value, label, value == chosen) for value, label in choices.items()]
        pickers.append(FilterField(f"{side}_{name}", LABELS[name], shown))
    return pickers


def _label(values: Sequence[str | None]) -> str:
    return shorten("/".join(value or "unknown" for value in values), LONGEST_LABEL)


def _story(project_id: int, question: AskedComparison) -> Mapping[str, Any]:
    a, b, versions = _sums(project_id, question.parts, is_matched=question.is_matched)
    names = names_of(question.parts, question.against)
    comparison = compare(count_calls(a), count_calls(b), names)
    return {
        "found": comparison,
        "rate_scale": _scale(comparison.rates),
        "kind_scale": _scale(comparison.kinds),
        "versions": versions,
        "costs": ((names[0], cost_of(a)), (names[1], cost_of(b))),
        "least": LEAST_TRIALS,
        "is_empty": not any(rate.a.trials or rate.b.trials for rate in comparison.rates),
    }


def _sums(project_id: int, parts: Parts, *, is_matched: bool) -> tuple[Sums, Sums, int | None]:
    sides = parts.a, parts.b
    if not is_matched:
        first, second = (sums_between(project_id, one.window, one.terms) for one in sides)
        return first, second, None
    a, b = (sums_by_version(project_id, one) for one in sides)
    both = [key for key in a if key in b and all(count_calls(one[key]).calls for one in (a, b))]
    return (add_sums([a[key] for key in both]), add_sums([b[key] for key in both]), len(both))


def _scale(differences: Sequence[RateDifference]) -> Scale:
    drawn = [difference for difference in differences if difference.is_enough]
    bounds = (bound for difference in drawn for bound in (difference.low, difference.high))
    return difference_scale(bounds, AXIS_WIDTH)

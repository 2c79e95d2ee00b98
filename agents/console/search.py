"""Search or jump to: runs by prefix, models, kinds, incidents, rules, views, pages, settings.

Every look-up reads an index or a small table of the project: words in events are left to
the Failures page, which the last hit leads to.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from operator import attrgetter
from typing import TypeVar
from urllib.parse import urlencode

from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from agents.badges import outcome_badge
from agents.console.goal_forms import AnswerForm
from agents.console.run_page import events_with, show_run
from agents.goals.records import find_goal, goal_path, is_plain, run_path
from diagnostics.accounts.models import SavedView
from diagnostics.alerting.incident_models import Incident
from diagnostics.alerting.rule_models import AlertRule
from diagnostics.analysis.series import name_of
from diagnostics.selection.query_language import Word, write_word
from diagnostics.store.models import Series, Version
from diagnostics.store.run_models import AgentRun
from diagnostics.web.filter_bar import KINDS
from diagnostics.web.model_links import model_url
from diagnostics.web.navigation import DATA, MAIN, MORE, SETTINGS, Destination
from diagnostics.web.pages import ConsoleRequest, member_page, respond
from failsoft.json_values import clean_text

T = TypeVar("T")
LONGEST_REFERENCE = 200
# In the address of a search that must not lead back here.
STAY = "stay"
LONGEST_TEXT = 200
SHOWN = 6
WORDS = "Words in failures"
PAGES = tuple(dict.fromkeys([*MAIN, *chain(*MORE.values()), *DATA]))
LABEL = attrgetter("label")
INCIDENT_NUMBER = re.compile(r"(?:#|incident\s*#?)?\s*(\d{1,9})", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SearchHit:
    """Where a hit leads; an exact one is the id itself, as it was typed."""

    label: str
    url: str
    note: str = ""
    is_exact: bool = False


@dataclass(frozen=True, slots=True)
class SearchGroup:
    title: str
    hits: Sequence[SearchHit]


@member_page
def search_page(request: ConsoleRequest) -> HttpResponse:
    """Show what a text finds; the id of a single run or incident leads straight to its page."""
    text = clean_text(request.GET.get("q", "")).strip()[:LONGEST_TEXT]
    groups = find(request, text)
    exact = [hit for group in groups for hit in group.hits if hit.is_exact]
    if len(exact) == 1 and not request.htmx and STAY not in request.GET:
        return redirect(exact[0].url)
    is_found = any(group.title != WORDS for group in groups)
    context = {"section": "search", "text": text, "groups": groups, "is_found": is_found}
    return respond(request, "search/search", context, f"{text} · Search" if text else "Search")


def find(request: ConsoleRequest, text: str) -> list[SearchGroup]:
    """Return what a text finds, ids first; the number of queries does not depend on it."""
    if not text:
        return [SearchGroup("Pages", _page_hits(PAGES))]
    groups = (SearchGroup(title, list(hits(request, text))[:SHOWN]) for title, hits in SOURCES)
    return [group for group in groups if group.hits]


def _runs(request: ConsoleRequest, text: str) -> Iterator[SearchHit]:
    """Runs whose id begins with the text; a goal of this id before its first event."""
    project_id = request.project.pk
    runs = AgentRun.objects.filter(project=project_id, correlation_id__startswith=text)
    rows = list(runs.order_by("correlation_id")[: SHOWN + 1])
    if all(row.correlation_id != text for row in rows) and find_goal(project_id, text):
        yield SearchHit(text, run_path(text), "goal", is_exact=True)
    for row in rows:
        reference, name = row.correlation_id, name_of(row.provider, row.model)
        note = f"{outcome_badge(row.outcome)[1]} · {name}"
        yield SearchHit(reference, run_path(reference), note, is_exact=reference == text)


def _incidents(request: ConsoleRequest, text: str) -> Iterator[SearchHit]:
    incidents = Incident.objects.filter(project=request.project)
    number = INCIDENT_NUMBER.fullmatch(text)
    matches = {"pk": int(number[1])} if number else {"title__icontains": text}
    chosen = incidents.filter(**matches)
    for row in chosen.order_by("-fired_at", "-pk")[:SHOWN]:
        state = "open" if row.cleared_at is None else "resolved"
        url = reverse("incident", args=[row.pk])
        yield SearchHit(f"Incident {row.pk}: {row.title}", url, state, is_exact=bool(number))


def _models(request: ConsoleRequest, text: str) -> Iterator[SearchHit]:
    called = Series.objects.filter(project=request.project).values_list("provider", "model")
    pairs = sorted(set(called), key=lambda pair: (pair[1] or "", pair[0] or ""))
    providers = sorted({provider for provider, _ in pairs if provider})
    for name in _matching(providers, text, str):
        query = urlencode({"provider": name})
        yield SearchHit(name, f"{reverse('models')}?{query}", "provider")
    for provider, model in _matching(pairs, text, lambda pair: "/".join(map(str, pair))):
        yield SearchHit(name_of(provider, model), model_url(provider, model), "model")


def _kinds(_: ConsoleRequest, text: str) -> Iterator[SearchHit]:
    kinds = [str(kind) for kind in dict.fromkeys(map(str, KINDS))]
    for kind in _matching(kinds, text.replace(" ", "_"), str):
        query = urlencode({"kind": kind})
        yield SearchHit(kind, f"{reverse('failures')}?{query}", "failures of this kind")


def _prompts(request: ConsoleRequest, text: str) -> Iterator[SearchHit]:
    versions = Version.objects.filter(project=request.project, prompt_version__icontains=text)
    names = versions.order_by("prompt_version").values_list("prompt_version", flat=True).distinct()
    for name in names[:SHOWN]:
        yield SearchHit(str(name), f"{reverse('prompts')}?{urlencode({'prompt_version': name})}")


def _rules(request: ConsoleRequest, text: str) -> Iterator[SearchHit]:
    rules = AlertRule.objects.filter(project=request.project, archived_at=None)
    for rule in rules.filter(name__icontains=text).order_by("name", "pk")[:SHOWN]:
        note = "" if rule.is_enabled else "disabled"
        yield SearchHit(rule.name, reverse("alert_rule", args=[rule.pk]), note)


def _views(request: ConsoleRequest, text: str) -> Iterator[SearchHit]:
    views = SavedView.open_to(request.project.pk, request.user)
    for view in views.filter(name__icontains=text)[:SHOWN]:
        yield SearchHit(view.name, view.address, "" if view.is_shared else "private")


def _words(_: ConsoleRequest, text: str) -> Iterator[SearchHit]:
    """The last resort: the text itself, in previews and error messages."""
    query = urlencode({"range": "7d", "q": write_word(Word(text))})
    yield SearchHit(
        f"Search failures for “{text}”", f"{reverse('failures')}?{query}", "last 7 days"
    )


SOURCES: Sequence[tuple[str, Callable[[ConsoleRequest, str], Iterable[SearchHit]]]] = (
    ("Incidents", _incidents),
    ("Runs", _runs),
    ("Models", _models),
    ("Kinds", _kinds),
    ("Prompt versions", _prompts),
    ("Alert rules", _rules),
    ("Saved views", _views),
    ("Pages", lambda _, text: _page_hits(_matching(PAGES, text, LABEL))),
    ("Settings", lambda _, text: _page_hits(_matching(chain(*SETTINGS.values()), text, LABEL))),
    (WORDS, _words),
)


def _page_hits(pages: Iterable[Destination]) -> list[SearchHit]:
    return [SearchHit(page.label, reverse(page.name)) for page in pages]


def _matching(rows: Iterable[T], text: str, label: Callable[[T], str]) -> list[T]:
    needle = text.casefold()
    return [row for row in rows if needle in label(row).casefold()][:SHOWN]


@member_page
def find_run(request: ConsoleRequest) -> HttpResponse:
    """Lead to the run with a correlation id, or to the search where there is none."""
    reference = request.GET.get("reference", "").strip()[:LONGEST_REFERENCE]
    reference = reference.replace("\0", "")
    goal = find_goal(request.project.pk, reference) if reference else None
    if goal is not None:
        return redirect(goal_path(goal))
    if events_with(request.project.pk, reference):
        if is_plain(reference):
            return redirect(run_path(reference))
        # No address can name it.
        return show_run(request, reference, None, AnswerForm())
    query = {"q": reference, STAY: "1"} if reference else {}
    return redirect(f"{reverse('search')}?{urlencode(query)}")

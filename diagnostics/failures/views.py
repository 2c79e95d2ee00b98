"""The failures page: failure groups under the filters, and what members do with them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.auth.models import User
from django.contrib.messages import INFO, SUCCESS
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse

from diagnostics import clock
from diagnostics.failures import states
from diagnostics.failures.counts import GroupQuestion, Sort, newest_of, read_question, states_of
from diagnostics.failures.groups import GroupRow, groups_of
from diagnostics.failures.models import FailureGroup
from diagnostics.failures.shares import Denominator, calls_by_node
from diagnostics.failures.wording import MEANINGS, STATES, title_of
from diagnostics.figures import Tone, plural, read_number
from diagnostics.rest.cursors import BadCursorError
from diagnostics.selection.selection import Selection
from diagnostics.web.filter_bar import filter_frame, read_filters
from diagnostics.web.pages import ConsoleRequest, member_action, member_page, require_actor, respond
from failsoft.events import EventKind
from failsoft.json_values import clean_text

PAGE = 20
KEPT = ("state", "sort")
SORTS: Mapping[Sort, str] = {Sort.RISING: "Rising", Sort.MOST: "Count", Sort.LATEST: "Last seen"}
OPEN = ("new", "regressed", "ongoing")
TABS: Mapping[str, Sequence[str]] = {
    "open": OPEN,
    **{state: (state,) for state in STATES},
    "all": tuple(STATES),
}
"""The states of each tab; the first is the default."""


@dataclass(frozen=True, slots=True)
class FailureLine:
    row: GroupRow
    calls: Denominator | None
    """The denominator of its node; None if calls are not counted."""
    url: str

    @property
    def group(self) -> FailureGroup:
        return self.row.group

    @property
    def title(self) -> str:
        group = self.group
        return title_of(group.kind, group.error_type, group.pointer, group.detail, group.node)

    @property
    def tone(self) -> Tone:
        return STATES[self.group.state]

    @property
    def models(self) -> Mapping[str, int]:
        counts: dict[str, int] = {}
        for (_, model), count in self.row.models.items():
            name = model or "unknown"
            counts[name] = counts.get(name, 0) + count
        return counts

    @property
    def top_share(self) -> float:
        return next(iter(self.models.values()), 0) / max(self.row.seen, 1)

    @property
    def rate(self) -> float | None:
        return self.calls.share_of(self.row.seen) if self.calls else None


@member_page
def failures(request: ConsoleRequest) -> HttpResponse:
    selection = read_filters(request)
    context = {**_context(request, selection), "section": "failures"}
    return respond(request, "failures/list", context, "Failures")


def failure_url(group_id: int, query: str = "") -> str:
    address = reverse("failure", args=[group_id])
    return f"{address}?{query}" if query else address


def narrowed_to(selection: Selection, group: FailureGroup) -> Selection:
    """Return the selection of one failure's events, as far as filters can express it."""
    is_degraded = group.kind == EventKind.DEGRADED
    filters = {
        "node": group.node,
        "kind": group.kind if is_degraded else group.error_type or group.kind,
        "reason": group.error_type if is_degraded else "",
        # The pointer of a group has * for an index, where events have a number.
        "pointer": "" if "*" in group.pointer else group.pointer,
    }
    set_filters = {name: value for name, value in filters.items() if value}
    return replace(selection, filters={**selection.filters, **set_filters})


def _context(request: ConsoleRequest, selection: Selection) -> Mapping[str, Any]:
    state, sort = request.GET.get("state", ""), request.GET.get("sort", "")
    state = state if state in TABS else "open"
    order = Sort(sort) if sort in list(Sort) else Sort.RISING
    states = list(TABS[state])
    now = clock.now()
    whole, notice = read_question(selection, now, states)
    question = newest_of(request.project.pk, whole)
    is_part = question.since > whole.since
    is_cut = notice or is_part
    covers = None if is_cut else selection.covered(question.begin, question.end, now)
    rows, after = _page(request, question, order)
    calls = calls_by_node(request.project.pk, question)
    counted = states_of(request.project.pk, question)
    query = selection.query()
    return {
        **filter_frame(
            request,
            selection,
            export="failures",
            exported={"state": state},
            kept=KEPT,
            covers=covers,
        ),
        "lines": [
            FailureLine(row, calls.get(row.group.node), failure_url(row.group.pk, query))
            for row in rows
        ],
        "after": after,
        "is_first": not request.GET.get("after"),
        "total": sum(counted.get(state, 0) for state in states),
        "state": state,
        "meaning": MEANINGS.get(state),
        "tabs": [
            (name, _query(selection, name, order), sum(counted.get(state, 0) for state in of_tab))
            for name, of_tab in TABS.items()
        ],
        "sorts": [
            (words, _query(selection, state, state), state is order)
            for state, words in SORTS.items()
        ],
        "query": _query(selection, state, order),
        "notice": notice,
        "newest_since": question.since if is_part else None,
        "is_narrowed": bool(selection.terms or selection.text.words or state != "all"),
        "is_empty": not rows and not FailureGroup.objects.filter(project=request.project).exists(),
        "hours": (question.end - question.begin).total_seconds() / 3600,
    }


def _page(
    request: ConsoleRequest, question: GroupQuestion, order: Sort
) -> tuple[Sequence[GroupRow], str | None]:
    """Return the page at the cursor; the first page if it is invalid."""
    after = request.GET.get("after") or None
    try:
        return groups_of(request.project.pk, question, PAGE, after, order)
    except BadCursorError:
        return groups_of(request.project.pk, question, PAGE, None, order)


def _query(selection: Selection, state: str, order: Sort) -> str:
    own = {
        "state": None if state == "open" else state,
        "sort": None if order is Sort.RISING else order.value,
    }
    own_query = urlencode({name: value for name, value in own.items() if value})
    return "&".join(part for part in (selection.query(), own_query) if part)


MOST_AT_ONCE = 200
LONGEST_RELEASE = 200
MOST_TIMES = 1_000_000
MUTES: Mapping[str, timedelta | None] = {
    "hour": timedelta(hours=1),
    "day": timedelta(days=1),
    "week": timedelta(days=7),
    "ever": None,
}
Act = Callable[[ConsoleRequest, Sequence[int], User], tuple[int, str]]


@member_action
def act_on_failures(request: ConsoleRequest) -> HttpResponse:
    person = require_actor(request)
    numbers = (read_number(text) for text in request.POST.getlist("id"))
    ids = [number for number in numbers if number is not None]
    act = ACTS.get(request.POST.get("verb", ""))
    if not ids:
        messages.warning(request, "Select at least one failure.")
    elif act is None:
        messages.error(request, "Choose an action.")
    else:
        try:
            changed, outcome = act(request, ids[:MOST_AT_ONCE], person)
        except ValueError as error:
            messages.error(request, str(error))
        else:
            words = f"{plural(changed, 'failure')} {outcome}" if changed else "No change."
            messages.add_message(request, SUCCESS if changed else INFO, words)
    return redirect(return_url(request))


def _resolve(request: ConsoleRequest, ids: Sequence[int], by: User) -> tuple[int, str]:
    changed = states.resolve(request.project.pk, ids, by)
    return changed, "resolved. Seen again, it is regressed."


def _resolve_in(request: ConsoleRequest, ids: Sequence[int], by: User) -> tuple[int, str]:
    release = clean_text(request.POST.get("release", "")).strip()[:LONGEST_RELEASE]
    if not release:
        raise ValueError("Enter the release that fixes it.")
    changed = states.resolve(request.project.pk, ids, by, release)
    return changed, f"resolved in {release}. Older releases may still fail."


def _mute(request: ConsoleRequest, ids: Sequence[int], by: User) -> tuple[int, str]:
    span = request.POST.get("span", "day")
    if span not in MUTES:
        raise ValueError("Choose a duration.")
    length = MUTES[span]
    until = None if length is None else clock.now() + length
    outcome = "muted." if length is None else f"muted for a{'n' * (span == 'hour')} {span}."
    return states.mute(request.project.pk, ids, by, until=until), outcome


def _mute_times(request: ConsoleRequest, ids: Sequence[int], by: User) -> tuple[int, str]:
    more = read_number(request.POST.get("more")) or 0
    if not 1 <= more <= MOST_TIMES:
        raise ValueError(f"Enter a number from 1 to {MOST_TIMES:,}.")
    changed = states.mute(request.project.pk, ids, by, more=more)
    return changed, f"muted until seen {plural(more, 'time')} more."


def _reopen(request: ConsoleRequest, ids: Sequence[int], by: User) -> tuple[int, str]:
    return states.reopen(request.project.pk, ids, by), "reopened."


def _comment(request: ConsoleRequest, ids: Sequence[int], by: User) -> tuple[int, str]:
    text = request.POST.get("text", "")
    if not text.strip():
        raise ValueError("Enter a comment.")
    return states.comment(request.project.pk, ids, by, clean_text(text)), "commented."


ACTS: Mapping[str, Act] = {
    "resolve": _resolve,
    "resolve_in": _resolve_in,
    "mute": _mute,
    "mute_times": _mute_times,
    "reopen": _reopen,
    "comment": _comment,
}


def return_url(request: ConsoleRequest) -> str:
    """Return the URL of the submitting page: a group of this project, or the list."""
    number = request.POST.get("back", "")
    groups = FailureGroup.objects.filter(project=request.project)
    is_known = groups.filter(pk=read_number(number) or 0).exists()
    address = reverse("failure", args=[int(number)]) if is_known else reverse("failures")
    # Parsed and re-encoded, so that the result can only be a query string.
    query = QueryDict(request.POST.get("query", "")[:4_000]).urlencode()
    return f"{address}?{query}" if query else address

"""Actions of members on failure groups: resolve, mute, reopen, comment."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse

from diagnostics import clock
from diagnostics.failures import states
from diagnostics.failures.models import FailureGroup
from diagnostics.figures import plural, read_number
from diagnostics.web.access import ConsoleRequest, member_action, require_actor
from failsoft.json_values import clean_text

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
    """Apply an action to the selected groups, then return to the page it came from."""
    require_actor(request)
    numbers = (read_number(text) for text in request.POST.getlist("id"))
    ids = [number for number in numbers if number is not None]
    act = ACTS.get(request.POST.get("verb", ""))
    if not ids:
        messages.warning(request, "Select at least one failure.")
    elif act is None:
        messages.error(request, "Choose an action.")
    else:
        _apply(request, act, ids[:MOST_AT_ONCE])
    return redirect(return_url(request))


def _apply(request: ConsoleRequest, act: Act, ids: Sequence[int]) -> None:
    person = User.objects.get(pk=request.user.pk or 0)
    try:
        changed, outcome = act(request, ids, person)
    except ValueError as error:
        messages.error(request, str(error))
        return
    if changed:
        messages.success(request, f"{plural(changed, 'failure')} {outcome}")
    else:
        messages.info(request, "No change.")


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

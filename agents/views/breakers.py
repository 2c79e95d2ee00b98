"""Circuit breakers: where each stands, what moved it, and moving it by hand."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.conf import settings
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST, require_safe

from agents.breaking import Hand, Line, close_breaker, isolate_breaker, isolate_line
from agents.core.badges import Badge
from agents.core.breaker import Kind, State
from agents.core.breaker_words import (
    ORDER,
    WATCHED,
    breaker_badge,
    describe_cause,
    describe_state,
)
from agents.forms import IsolateForm, ReasonForm
from agents.guarding import DENY
from agents.models import Breaker, BreakerTransition
from diagnostics import clock
from diagnostics.access.auditing import note
from diagnostics.core.cleaning import JSON
from diagnostics.models import Project
from diagnostics.views.access import ConsoleRequest, may_act, member_view
from diagnostics.views.pages import respond

MOST_TRANSITIONS = 50


@dataclass(frozen=True, slots=True)
class BreakerRow:
    """A breaker as a line of the table."""

    breaker: Breaker
    badge: Badge
    watches: str
    meaning: str
    cause: str

    @property
    def is_closed(self) -> bool:
        """Whether it lets everything through."""
        return self.breaker.state == State.CLOSED

    @property
    def is_isolated(self) -> bool:
        """Whether only a person can close it."""
        return self.breaker.state == State.ISOLATED


@dataclass(frozen=True, slots=True)
class TransitionRow:
    """A change of state as a line of the history."""

    transition: BreakerTransition
    before: Badge
    after: Badge
    cause: str


@require_safe
@member_view
def breakers(request: ConsoleRequest) -> HttpResponse:
    """Show the breakers of the project, those that hold something back first."""
    return _show(request, IsolateForm(request.project))


@require_POST
@member_view
def isolate(request: ConsoleRequest, breaker_id: int) -> HttpResponse:
    """Let nothing through until somebody closes it."""
    return _move(request, breaker_id, close=False)


@require_POST
@member_view
def close(request: ConsoleRequest, breaker_id: int) -> HttpResponse:
    """Forget all faults and let everything through."""
    return _move(request, breaker_id, close=True)


@require_POST
@member_view
def isolate_model(request: ConsoleRequest) -> HttpResponse:
    """Isolate a model's operation, whether or not its breaker has ever moved."""
    if not may_act(request):
        raise PermissionDenied
    form = IsolateForm(request.project, request.POST)
    if not form.is_valid():
        return _show(request, form)
    chosen = form.cleaned_data
    model = chosen["language_model"]
    line = Line(
        request.project.pk,
        model.provider.name,
        model.name,
        chosen["operation"],
        Kind.TRANSPORT,
    )
    with transaction.atomic():
        changed = isolate_line(line, _hand(request, chosen["reason"]))
        target = f"{model.provider.name}/{model.name} {chosen['operation']}"
        _note(request, changed, "isolated", target, chosen["reason"])
    _tell(request, changed, "isolated")
    return redirect(_back(request))


def _move(request: ConsoleRequest, breaker_id: int, *, close: bool) -> HttpResponse:
    row = get_object_or_404(Breaker, project=request.project, pk=breaker_id)
    if not may_act(request):
        raise PermissionDenied
    form = ReasonForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Say why, in 200 characters: it stays in the history.")
        return redirect(_back(request))
    move = close_breaker if close else isolate_breaker
    reason, word = form.cleaned_data["reason"], "closed" if close else "isolated"
    with transaction.atomic():
        changed = move(row.pk, _hand(request, reason))
        target = f"{row.provider}/{row.model} {row.operation}"
        _note(request, changed, word, target, reason)
    _tell(request, changed, word)
    return redirect(_back(request))


def _back(request: ConsoleRequest) -> str:
    """Give the page of this console that the form stood on."""
    asked = request.POST.get("next", "")
    is_ours = url_has_allowed_host_and_scheme(asked, {request.get_host()})
    return asked if is_ours and asked.startswith("/") else reverse("breakers")


def _hand(request: ConsoleRequest, reason: str) -> Hand:
    return Hand(request.user.get_username(), reason)


def _note(request: ConsoleRequest, changed: bool, word: str, target: str, reason: str) -> None:
    """Write down who moved a breaker, when it moved at all."""
    if changed:
        told: dict[str, JSON] = {"why": reason}
        note(request.project.pk, request.user, f"breaker.{word}", target, told)


def _tell(request: ConsoleRequest, changed: bool, word: str) -> None:
    if changed:
        messages.success(request, f"The breaker is {word}.")
    else:
        messages.info(request, f"The breaker was {word} already.")


def _show(request: ConsoleRequest, form: IsolateForm) -> HttpResponse:
    rows = _rows(request.project)
    context = {
        "rows": rows,
        "holding": sum(not row.is_closed for row in rows),
        "history": _history(request.project),
        "most": MOST_TRANSITIONS,
        "now": clock.now(),
        "may_act": may_act(request),
        "form": form,
        "section": "breakers",
    }
    return respond(request, "breakers/list", context)


def _rows(project: Project) -> Sequence[BreakerRow]:
    denies = settings.FAILSOFT_BREAKER_POLICY == DENY
    return breaker_rows(Breaker.objects.filter(project=project), denies=denies)


def breaker_rows(found: Iterable[Breaker], *, denies: bool) -> Sequence[BreakerRow]:
    """Put breakers into words, those that hold something back first."""
    rows = [_row(row, denies=denies) for row in found]
    return sorted(rows, key=lambda row: ORDER.index(State(row.breaker.state)))


def _row(row: Breaker, *, denies: bool) -> BreakerRow:
    kind, state = Kind(row.kind), State(row.state)
    return BreakerRow(
        row,
        breaker_badge(state),
        WATCHED[kind],
        describe_state(kind, state, denies=denies),
        describe_cause(row.cause),
    )


def _history(project: Project) -> Sequence[TransitionRow]:
    found = BreakerTransition.objects.filter(breaker__project=project)
    newest = found.select_related("breaker").order_by("-id")
    return transition_rows(newest[:MOST_TRANSITIONS])


def transition_rows(found: Iterable[BreakerTransition]) -> Sequence[TransitionRow]:
    """Put changes of state into words."""
    return [
        TransitionRow(
            item,
            breaker_badge(State(item.from_state)),
            breaker_badge(State(item.to_state)),
            describe_cause(item.cause),
        )
        for item in found
    ]

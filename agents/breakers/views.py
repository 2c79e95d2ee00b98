"""Circuit breakers: where each stands, what moved it, and moving it by hand."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from django import forms
from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from agents.badges import Badge
from agents.breakers.api import REASON_CHARACTERS
from agents.breakers.guard import DENY
from agents.breakers.models import Breaker, BreakerTransition
from agents.breakers.store import BreakerScope, Hand, close_breaker, isolate_breaker, isolate_line
from agents.goals.state import NODES
from agents.llm.forms import LanguageModelField, enabled_models
from agents.llm.models import LanguageModel
from diagnostics import clock
from diagnostics.accounts.audit_log import note
from diagnostics.accounts.models import Project
from diagnostics.web.access import ConsoleRequest, member_view, own_page, require_actor
from diagnostics.web.charts.marks import Tone
from diagnostics.web.pages import respond
from failsoft.json_values import JSON
from failsoft.retry.answers import PlannerSchema
from failsoft.retry.breaker import BreakerKind, BreakerState

TONES: Mapping[BreakerState, Tone] = {
    BreakerState.CLOSED: "good",
    BreakerState.OPEN: "bad",
    BreakerState.HALF_OPEN: "warn",
    BreakerState.ISOLATED: "bad",
}
STATES: Mapping[BreakerState, str] = {
    BreakerState.CLOSED: "closed",
    BreakerState.OPEN: "open",
    BreakerState.HALF_OPEN: "half open",
    BreakerState.ISOLATED: "isolated",
}
# Worst first.
ORDER = (BreakerState.ISOLATED, BreakerState.OPEN, BreakerState.HALF_OPEN, BreakerState.CLOSED)
CAUSES: Mapping[str, str] = {
    "faults_in_a_row": "too many faults in a row",
    "fault_rate": "too many faults in a minute",
    "cooled_down": "the cool-down ended",
    "probe_failed": "the probe failed",
    "probes_succeeded": "two probes were good",
    "by_hand": "by hand",
}
WATCHED: Mapping[BreakerKind, str] = {
    BreakerKind.TRANSPORT: "calls that get an answer",
    BreakerKind.QUALITY: "goals that get a usable answer",
}
NOTHING_PASSES = "No call is made."
MEANINGS: Mapping[tuple[BreakerKind, BreakerState], str] = {
    (BreakerKind.TRANSPORT, BreakerState.CLOSED): "Every call is made.",
    (
        BreakerKind.TRANSPORT,
        BreakerState.OPEN,
    ): f"{NOTHING_PASSES} After the cool-down one probe is.",
    (BreakerKind.TRANSPORT, BreakerState.HALF_OPEN): "One probe at a time; two good ones close it.",
    (BreakerKind.TRANSPORT, BreakerState.ISOLATED): f"{NOTHING_PASSES} Somebody has to close it.",
    (BreakerKind.QUALITY, BreakerState.CLOSED): "Goals are retried as they ask for.",
    (
        BreakerKind.QUALITY,
        BreakerState.HALF_OPEN,
    ): "One goal at a time has all its retries, as a probe.",
    (BreakerKind.QUALITY, BreakerState.ISOLATED): "Nothing is retried. Somebody has to close it.",
    (
        BreakerKind.QUALITY,
        BreakerState.OPEN,
    ): "One attempt a goal. After the cool-down one goal has retries.",
}


def breaker_badge(state: BreakerState) -> Badge:
    """Tone and word of a state."""
    return TONES[state], STATES[state]


def describe_state(kind: BreakerKind, state: BreakerState, *, denies: bool) -> str:
    """What a state does to goals; `denies` is the policy that lets no attempt through."""
    if (
        kind is BreakerKind.QUALITY
        and denies
        and state in (BreakerState.OPEN, BreakerState.ISOLATED)
    ):
        return NOTHING_PASSES
    return MEANINGS[kind, state]


def describe_cause(cause: str | None) -> str:
    """Why a breaker is where it is."""
    return CAUSES.get(cause or "", "")


class ReasonForm(forms.Form):
    """Why a person moves a breaker."""

    reason = forms.CharField(max_length=REASON_CHARACTERS)


class IsolateForm(forms.Form):
    """Which model is to be left alone, at what, and why."""

    language_model = LanguageModelField(
        LanguageModel.objects.none(), label="Model", empty_label=None
    )
    operation = forms.ChoiceField(
        choices=[(node, node.replace("_", " ")) for node in NODES.values()],
        initial=NODES[PlannerSchema.PLAN],
        label="Planning",
    )
    reason = forms.CharField(max_length=REASON_CHARACTERS, label="Why")

    def __init__(self, project: Project, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - passed on
        super().__init__(*args, **kwargs)
        field = cast("LanguageModelField", self.fields["language_model"])
        field.queryset = enabled_models(project)


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
        return self.breaker.state == BreakerState.CLOSED

    @property
    def is_isolated(self) -> bool:
        """Whether only a person can close it."""
        return self.breaker.state == BreakerState.ISOLATED


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
    require_actor(request)
    form = IsolateForm(request.project, request.POST)
    if not form.is_valid():
        return _show(request, form)
    chosen = form.cleaned_data
    model = chosen["language_model"]
    line = BreakerScope(
        request.project.pk,
        model.provider.name,
        model.name,
        chosen["operation"],
        BreakerKind.TRANSPORT,
    )
    with transaction.atomic():
        changed = isolate_line(line, _hand(request, chosen["reason"]))
        target = f"{model.provider.name}/{model.name} {chosen['operation']}"
        _note(request, changed, "isolated", target, chosen["reason"])
    _tell(request, changed, "isolated")
    return redirect(_back(request))


def _move(request: ConsoleRequest, breaker_id: int, *, close: bool) -> HttpResponse:
    row = get_object_or_404(Breaker, project=request.project, pk=breaker_id)
    require_actor(request)
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
    """Return the page of this console that the form stood on."""
    return own_page(request, request.POST.get("next", ""), reverse("breakers"))


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
        "form": form,
        "section": "breakers",
    }
    return respond(request, "breakers/list", context, "Breakers")


def _rows(project: Project) -> Sequence[BreakerRow]:
    denies = settings.FAILSOFT_BREAKER_POLICY == DENY
    return breaker_rows(Breaker.objects.filter(project=project), denies=denies)


def breaker_rows(found: Iterable[Breaker], *, denies: bool) -> Sequence[BreakerRow]:
    """Put breakers into words, those that hold something back first."""
    rows = [_row(row, denies=denies) for row in found]
    return sorted(rows, key=lambda row: ORDER.index(BreakerState(row.breaker.state)))


def _row(row: Breaker, *, denies: bool) -> BreakerRow:
    kind, state = BreakerKind(row.kind), BreakerState(row.state)
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
            breaker_badge(BreakerState(item.from_state)),
            breaker_badge(BreakerState(item.to_state)),
            describe_cause(item.cause),
        )
        for item in found
    ]

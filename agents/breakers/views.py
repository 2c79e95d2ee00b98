"""Circuit breakers: their state and history, and manual changes."""

from collections.abc import Iterable
from typing import Any, cast

from django import forms
from django.contrib import messages
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse

from agents.breakers.api import MOVES, REASON_CHARACTERS
from agents.breakers.models import Breaker, BreakerTransition
from agents.breakers.store import BreakerScope, ManualChange, change_breaker, isolate_scope
from agents.goals.state import NODES
from agents.llm.forms import LanguageModelField, enabled_models
from agents.llm.models import LanguageModel
from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.web.pages import (
    ConsoleRequest,
    member_action,
    member_page,
    own_page,
    require_actor,
    respond,
)
from failsoft.retry.breaker import BreakerKind

# Worst first.
ORDER = ("isolated", "open", "half_open", "closed")
MOST_TRANSITIONS = 50


class ReasonForm(forms.Form):
    reason = forms.CharField(max_length=REASON_CHARACTERS)


class IsolateForm(forms.Form):
    language_model = LanguageModelField(
        LanguageModel.objects.none(), label="Model", empty_label=None
    )
    operation = forms.MultipleChoiceField(
        choices=[(node, node.replace("_", " ")) for node in NODES.values()],
        initial=list(NODES.values()),
        label="Operations",
        widget=forms.CheckboxSelectMultiple,
    )
    reason = forms.CharField(max_length=REASON_CHARACTERS, label="Reason")

    def __init__(self, project: Project, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        field = cast("LanguageModelField", self.fields["language_model"])
        field.queryset = enabled_models(project)


@member_page
def breakers(request: ConsoleRequest) -> HttpResponse:
    return _show(request, IsolateForm(request.project))


@member_action
def isolate_model(request: ConsoleRequest) -> HttpResponse:
    """Isolate operations of a model, whether or not their breakers have rows."""
    require_actor(request)
    form = IsolateForm(request.project, request.POST)
    if not form.is_valid():
        return _show(request, form)
    data = form.cleaned_data
    model = data["language_model"]
    names = (request.project.pk, model.provider.name, model.name)
    change = ManualChange(request.user, data["reason"])
    changed = [
        isolate_scope(BreakerScope(*names, operation, BreakerKind.TRANSPORT), change)
        for operation in data["operation"]
    ]
    _report(request, any(changed), "isolated")
    return redirect(_back(request))


@member_action
def move_breaker(request: ConsoleRequest, breaker_id: int, verb: str) -> HttpResponse:
    """Isolate it (no calls until it is closed) or close it (all faults are forgotten)."""
    row = get_object_or_404(Breaker, project=request.project, pk=breaker_id)
    require_actor(request)
    form = ReasonForm(request.POST)
    if not form.is_valid():
        messages.error(request, "Enter a reason of up to 200 characters.")
        return redirect(_back(request))
    change = ManualChange(request.user, form.cleaned_data["reason"])
    _report(request, change_breaker(row.pk, MOVES[verb], change), f"{verb.removesuffix('e')}ed")
    return redirect(_back(request))


def _back(request: ConsoleRequest) -> str:
    return own_page(request, request.POST.get("next", ""), reverse("breakers"))


def _report(request: ConsoleRequest, changed: bool, word: str) -> None:
    if changed:
        messages.success(request, f"Breaker {word}.")
    else:
        messages.info(request, f"Breaker already {word}.")


def _show(request: ConsoleRequest, form: IsolateForm) -> HttpResponse:
    rows = by_state(Breaker.objects.filter(project=request.project))
    context = {
        "rows": rows,
        "holding": sum(not row.is_closed for row in rows),
        "history": newest_transitions(MOST_TRANSITIONS, project=request.project),
        "most": MOST_TRANSITIONS,
        "now": clock.now(),
        "form": form,
        "section": "breakers",
    }
    return respond(request, "breakers/list", context, "Breakers")


def by_state(rows: Iterable[Breaker]) -> list[Breaker]:
    return sorted(rows, key=lambda row: ORDER.index(row.state))


def newest_transitions(most: int, **of_breaker: object) -> QuerySet[BreakerTransition]:
    conditions = {f"breaker__{name}": value for name, value in of_breaker.items()}
    transitions = BreakerTransition.objects.filter(**conditions).select_related("breaker")
    return transitions.order_by("-id")[:most]

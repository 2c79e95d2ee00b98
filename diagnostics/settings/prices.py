"""Prices: what a million tokens of a model cost this project, since when."""

from typing import Any

from django import forms
from django.contrib import messages
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_http_methods, require_POST

from diagnostics import clock
from diagnostics.accounts.audit_log import note
from diagnostics.prices.models import Price
from diagnostics.redaction.redactor import redact_name
from diagnostics.settings.frame import settings_view, show
from diagnostics.web.access import ConsoleRequest, user_of

MOST_SHOWN = 200
DEAREST = 100_000


class PriceForm(forms.Form):
    """A custom price."""

    provider = forms.CharField(max_length=100)
    model = forms.CharField(max_length=200)
    input_per_million = forms.DecimalField(
        label="US dollars per 1M input tokens",
        min_value=0,
        max_value=DEAREST,
        max_digits=12,
        decimal_places=6,
    )
    output_per_million = forms.DecimalField(
        label="US dollars per 1M output tokens",
        min_value=0,
        max_value=DEAREST,
        max_digits=12,
        decimal_places=6,
    )
    valid_from = forms.DateField(
        label="Valid from (UTC date)",
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@settings_view
def prices(request: ConsoleRequest) -> HttpResponse:
    """Show the prices of the project; set a custom one."""
    form = PriceForm(request.POST or None, initial=_initial(request))
    if request.method == "POST" and form.is_valid():
        _save(request, form.cleaned_data)
        return redirect("prices")
    rows = Price.objects.filter(project=request.project)
    known = rows.exclude(input_per_million=None)
    context = {
        "tab": "prices",
        "form": form,
        # "own" sorts after "listed".
        "rows": known.order_by("-origin", "provider", "model", "-valid_from")[:MOST_SHOWN],
        "unknown": _unpriced(rows)[:MOST_SHOWN],
    }
    return show(request, "prices", context, "Prices")


@require_POST
@settings_view
def remove_price(request: ConsoleRequest, identity: int) -> HttpResponse:
    """Remove a custom price."""
    own = Price.objects.filter(project=request.project, origin=Price.Origin.OWN)
    with transaction.atomic():
        row = get_object_or_404(own, pk=identity)
        note(request.project.pk, user_of(request), "price.removed", str(row), _told(row))
        row.delete()
    messages.success(request, "Price removed.")
    return redirect("prices")


def _unpriced(rows: QuerySet[Price]) -> list[Price]:
    """Return the models that the list does not know and that have no custom price."""
    own = rows.filter(origin=Price.Origin.OWN).values_list("provider", "model")
    priced = set(own)
    unknown = rows.filter(input_per_million=None)
    return [row for row in unknown if (row.provider, row.model) not in priced]


def _initial(request: ConsoleRequest) -> dict[str, Any]:
    asked = {name: request.GET.get(name, "")[:200] for name in ("provider", "model")}
    return {**asked, "valid_from": clock.now().date()}


def _save(request: ConsoleRequest, told: dict[str, Any]) -> None:
    """Set the price from a day on; the same day again is corrected."""
    names = {name: redact_name(told[name]) for name in ("provider", "model")}
    key = {**names, "valid_from": told["valid_from"], "origin": Price.Origin.OWN}
    sums = {name: told[name] for name in ("input_per_million", "output_per_million")}
    sums["edition"] = ""
    with transaction.atomic():
        row, _ = Price.objects.update_or_create(project=request.project, **key, defaults=sums)
        note(request.project.pk, user_of(request), "price.set", str(row), _told(row))
    messages.success(request, "Price saved.")


def _told(row: Price) -> dict[str, str]:
    return {
        "input_per_million_usd": str(row.input_per_million),
        "output_per_million_usd": str(row.output_per_million),
    }

"""Prices per 1M tokens of a project's models, each valid from a date."""

from django import forms
from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect

from diagnostics import clock
from diagnostics.accounts.audit_log import note
from diagnostics.prices.models import Price
from diagnostics.redaction.redactor import redact_name
from diagnostics.settings.frame import settings_action, settings_form, show
from diagnostics.web.pages import ConsoleRequest, user_of

MOST_SHOWN = 200
DEAREST = 100_000


def _price_of(side: str) -> forms.DecimalField:
    label = f"{side}, $ per 1M tokens"
    return forms.DecimalField(
        label=label, min_value=0, max_value=DEAREST, max_digits=12, decimal_places=6
    )


class PriceForm(forms.Form):
    provider = forms.CharField(max_length=100)
    model = forms.CharField(max_length=200)
    input_per_million = _price_of("Input")
    output_per_million = _price_of("Output")
    valid_from = forms.DateField(
        label="Valid from (UTC date)",
        widget=forms.DateInput(attrs={"type": "date"}, format="%Y-%m-%d"),
    )


@settings_form
def prices(request: ConsoleRequest) -> HttpResponse:
    names = {name: request.GET.get(name, "")[:200] for name in ("provider", "model")}
    form = PriceForm(request.POST or None, initial={**names, "valid_from": clock.now().date()})
    if request.method == "POST" and form.is_valid():
        fields = form.cleaned_data
        models = {name: redact_name(fields[name]) for name in ("provider", "model")}
        # The same date replaces it.
        key = {**models, "valid_from": fields["valid_from"], "origin": Price.Origin.OWN}
        amounts = {name: fields[name] for name in ("input_per_million", "output_per_million")}
        amounts["edition"] = ""
        with transaction.atomic():
            row, _ = Price.objects.update_or_create(
                project=request.project, **key, defaults=amounts
            )
            note(request.project.pk, user_of(request), "price.set", str(row), _audit_details(row))
        messages.success(request, "Price saved.")
        return redirect("prices")
    rows = Price.objects.filter(project=request.project)
    unknown, known = rows.filter(input_per_million=None), rows.exclude(input_per_million=None)
    own = set(rows.filter(origin=Price.Origin.OWN).values_list("provider", "model"))
    context = {
        "tab": "prices",
        "form": form,
        # "own" sorts after "listed".
        "rows": known.order_by("-origin", "provider", "model", "-valid_from")[:MOST_SHOWN],
        "unknown": [row for row in unknown if (row.provider, row.model) not in own][:MOST_SHOWN],
    }
    return show(request, "prices", context, "Prices")


@settings_action
def remove_price(request: ConsoleRequest, identity: int) -> HttpResponse:
    own = Price.objects.filter(project=request.project, origin=Price.Origin.OWN)
    with transaction.atomic():
        row = get_object_or_404(own, pk=identity)
        note(request.project.pk, user_of(request), "price.removed", str(row), _audit_details(row))
        row.delete()
    messages.success(request, "Price removed.")
    return redirect("prices")


def _audit_details(row: Price) -> dict[str, str]:
    return {
        "input_per_million_usd": str(row.input_per_million),
        "output_per_million_usd": str(row.output_per_million),
    }

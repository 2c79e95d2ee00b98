"""A threshold for one model: three fields, a back-test, and saving it."""

from typing import Any
from urllib.parse import urlencode

from django import forms
from django.contrib import messages
from django.http import Http404, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from diagnostics.alerting.notification_models import Channel
from diagnostics.alerting.rule_editor import try_rule
from diagnostics.alerting.rule_form import check_figure, kept_limit, limit_box, shown_limit
from diagnostics.alerting.rule_rows import RuleError, create_rule
from diagnostics.alerting.rules import figure_of, filter_of
from diagnostics.alerting.signals import Signal
from diagnostics.alerting.wording import limit_words
from diagnostics.web.access import ConsoleRequest, member_form, require_administrator, user_of
from diagnostics.web.filter_bar import read_filters
from diagnostics.web.model_links import model_url
from diagnostics.web.pages import respond

UNITS = {
    Signal.CALL_FAILURE_RATIO: "%",
    Signal.DEGRADED_RATIO: "%",
    Signal.FIRST_PASS_FAILURE_RATIO: "%",
    Signal.LATENCY_P95: "ms",
}
"""The signals that a threshold of a model is most often set for, with their units."""
DETECTOR = "threshold"


class ThresholdForm(forms.Form):
    """What is measured, its limit, and who is notified."""

    signal = forms.ChoiceField(
        choices=[
            (one.value, f"{one.words[:1].upper()}{one.words[1:]} ({unit})")
            for one, unit in UNITS.items()
        ]
    )
    limit = forms.FloatField(widget=limit_box())
    notify = forms.ChoiceField(required=False)

    def __init__(self, project_id: int, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - Django's
        super().__init__(*args, **{"auto_id": "threshold_%s", **kwargs})
        rows = Channel.objects.filter(project_id=project_id).order_by("name")
        notify = self.fields["notify"]
        assert isinstance(notify, forms.ChoiceField)  # noqa: S101 - it is one
        names = [(str(pk), name) for pk, name in rows.values_list("pk", "name")]
        notify.choices = [("", "All channels"), *names]
        self.fields["limit"].initial = shown_limit(
            Signal.CALL_FAILURE_RATIO, figure_of(Signal.CALL_FAILURE_RATIO, DETECTOR, "limit").usual
        )

    def clean(self) -> dict[str, Any]:
        """Check the limit in the unit of its signal."""
        if "signal" in self.cleaned_data:
            check_figure(self, DETECTOR, "limit")
        return self.cleaned_data

    def given(self, provider: str | None, model: str | None) -> dict[str, Any]:
        """Return the rule that the form means for a model."""
        told = self.cleaned_data
        signal, limit = Signal(told["signal"]), kept_limit(told["signal"], told["limit"])
        return {
            "name": f"{model or 'unknown'}: {signal.words} {limit_words(signal, limit)}",
            "filter": filter_of([{"provider": provider, "model": model}]),
            "group_by": ["provider", "model"],
            "signal": signal,
            "detector": DETECTOR,
            "parameters": {"limit": limit},
            "routing": [int(told["notify"])] if told["notify"] else [],
        }

    def add_faults(self, faults: dict[str, str]) -> None:
        """Put the faults of the rule to the boxes that they are about."""
        for name, why in faults.items():
            box = name.removeprefix("parameters.")
            self.add_error(box if box in self.fields else None, why)


@member_form
def alert_threshold_new(request: ConsoleRequest) -> HttpResponse:
    """Set a threshold for the model of the address, once its back-test was shown."""
    if request.method == "POST":
        require_administrator(request)
    filters = read_filters(request).filters
    if not {"provider", "model"} <= filters.keys():
        raise Http404
    provider, model = filters["provider"], filters["model"]
    form = ThresholdForm(request.project.pk, request.POST or _asked(request))
    is_asked = request.method == "POST" and form.is_valid()
    if is_asked and _save(request, form, provider, model):
        return redirect(f"{model_url(provider, model)}#thresholds")
    found = try_rule(request, form, form.given(provider, model)) if form.is_valid() else {}
    context = {"form": form, "provider_name": provider, "model_name": model, **found}
    query = urlencode(_named(provider, model))
    context["save_at"] = f"{reverse('alert_threshold_new')}?{query}"
    return respond(request, "rules/threshold", {"section": "models", **context}, "Set a threshold")


def _asked(request: ConsoleRequest) -> dict[str, str] | None:
    """Read the form from the address, where its back-test is asked for."""
    return request.GET.dict() if "limit" in request.GET else None


def _named(provider: str | None, model: str | None) -> dict[str, str]:
    return {"provider": provider or "-", "model": model or "-"}


def _save(
    request: ConsoleRequest, form: ThresholdForm, provider: str | None, model: str | None
) -> bool:
    by = user_of(request)
    try:
        row = create_rule(request.project.pk, form.given(provider, model), by, by.pk)
    except RuleError as error:
        form.add_faults(error.faults)
        return False
    messages.success(request, f"{row.name}: evaluated from the next minute on.")
    return True

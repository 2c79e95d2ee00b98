"""Quotas: what a project may send; above the spike bound previews are sampled, counts not."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from diagnostics import clock
from diagnostics.access import key_cache
from diagnostics.access.auditing import note
from diagnostics.models import Quota, Usage
from diagnostics.views.access import ConsoleRequest
from diagnostics.views.settings.forms import QuotaForm
from diagnostics.views.settings.frame import person, settings_view, show

DAYS_SHOWN = 14


@require_http_methods(["GET", "HEAD", "POST"])
@settings_view
def quotas(request: ConsoleRequest) -> HttpResponse:
    """Show and save the limits."""
    own = Quota.objects.filter(project=request.project).first()
    form = QuotaForm(request.POST or None, instance=own or Quota(project=request.project))
    if request.method == "POST" and form.is_valid():
        _save(request, form)
        return redirect("settings_quotas")
    now = clock.now()
    days = Usage.objects.filter(project=request.project).order_by("-day")[:DAYS_SHOWN]
    context = {
        "rows": [(form[name], _default(name)) for name in form.fields],
        "form": form,
        "days": days,
        "today": now.date(),
    }
    return show(request, "quotas", context)


def _save(request: ConsoleRequest, form: QuotaForm) -> None:
    told: dict[str, Any] = {name: form.cleaned_data[name] for name in form.changed_data}
    with transaction.atomic():
        form.save()
        target = request.project.name
        note(request.project.pk, person(request), "quota.changed", target, told)
    key_cache.forget_all()
    messages.success(request, "Saved. Every process follows within 5 seconds.")


def _default(name: str) -> int:
    return int(getattr(settings, f"FAILSOFT_{name.upper()}"))

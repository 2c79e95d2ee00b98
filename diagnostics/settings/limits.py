"""Quotas and retention of a project."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import redirect

from diagnostics import clock
from diagnostics.accounts import authentication
from diagnostics.accounts.audit_log import note
from diagnostics.ingest.models import Quota, Usage
from diagnostics.settings.forms import QuotaForm
from diagnostics.settings.frame import settings_form, settings_page, show
from diagnostics.store.retention import daily_growth_bytes, storage_sizes
from diagnostics.web.access import ConsoleRequest, user_of

DAYS_SHOWN = 14


@settings_form
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
        "rows": [(form[n], getattr(settings, f"FAILSOFT_{n.upper()}")) for n in form.fields],
        "form": form,
        "days": days,
        "today": now.date(),
    }
    return show(request, "quotas", context, "Quotas")


def _save(request: ConsoleRequest, form: QuotaForm) -> None:
    changes: dict[str, Any] = {name: form.cleaned_data[name] for name in form.changed_data}
    with transaction.atomic():
        form.save()
        target = request.project.name
        note(request.project.pk, user_of(request), "quota.changed", target, changes)
    authentication.forget_all()
    messages.success(request, "Saved. Takes effect within 5 seconds.")


TABLES_SHOWN = 12
KEPT = (
    ("Payloads (previews, errors, repairs)", "KEEP_PAYLOAD_DAYS", "days"),
    ("Events", "KEEP_EVENT_DAYS", "days"),
    ("Minute counts", "KEEP_MINUTE_HOURS", "hours"),
    ("Hour counts", "KEEP_HOUR_MONTHS", "months"),
    ("Raw text of goals and plan runs, after their end", "WORKING_KEEP_HOURS", "hours"),
)


@settings_page
def retention(request: ConsoleRequest) -> HttpResponse:
    """Show retention periods, disk usage by table and growth."""
    sizes = storage_sizes()
    context = {
        "kept": [
            (label, getattr(settings, f"FAILSOFT_{name}"), unit, f"FAILSOFT_{name}")
            for label, name, unit in KEPT
        ],
        "sizes": sizes[:TABLES_SHOWN],
        "left_out": sizes[TABLES_SHOWN:],
        "left_out_bytes": sum(size.bytes for size in sizes[TABLES_SHOWN:]),
        "total_bytes": sum(size.bytes for size in sizes),
        "growth_bytes": daily_growth_bytes(clock.now()),
        "rejects_kept": settings.FAILSOFT_REJECTS_KEPT,
    }
    return show(request, "retention", context, "Retention")

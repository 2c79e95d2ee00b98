"""Wallboards of a project: created, listed with their addresses, revoked."""

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.http import require_http_methods, require_POST

from diagnostics.accounts.models import Wallboard
from diagnostics.accounts.wallboards import address_of, create_wallboard, revoke_wallboard
from diagnostics.redaction.fields import RedactedFormField
from diagnostics.settings.frame import settings_view, show
from diagnostics.web.access import ConsoleRequest, user_of

PAGE = "settings_wallboards"
MOST_SHOWN = 50


class WallboardForm(forms.Form):
    """The name of a new wallboard."""

    name = RedactedFormField(max_length=100, help_text="Where it is shown, for example NOC.")


@require_http_methods(["GET", "HEAD", "POST"])
@settings_view
def wallboards(request: ConsoleRequest) -> HttpResponse:
    """Show the wallboards; create one."""
    form = WallboardForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        create_wallboard(request.project, user_of(request), form.cleaned_data["name"])
        return redirect(PAGE)
    valid = Wallboard.objects.filter(project=request.project, revoked_at=None)
    rows = valid.select_related("created_by").order_by("name", "pk")[:MOST_SHOWN]
    context = {"form": form, "rows": [(row, address_of(row)) for row in rows]}
    return show(request, "wallboards", context, "Wallboards")


@require_POST
@settings_view
def revoke(request: ConsoleRequest, identity: int) -> HttpResponse:
    """Revoke a wallboard."""
    row = get_object_or_404(Wallboard, project=request.project, pk=identity)
    revoke_wallboard(row, user_of(request))
    messages.success(request, f"{row.name} is revoked.")
    return redirect(PAGE)

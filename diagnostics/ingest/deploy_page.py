"""The page of deploys: the list, and a form that adds one."""

from typing import Any

from django import forms
from django.contrib import messages
from django.db import transaction
from django.http import HttpResponse
from django.shortcuts import redirect
from pydantic import ValidationError

from diagnostics.accounts.audit_log import note
from diagnostics.ingest.deploy_items import DeployKind, PostedDeploy
from diagnostics.ingest.deploys import record_deploy, reported_deploys
from diagnostics.web.access import ConsoleRequest, may_act, member_form, require_actor
from diagnostics.web.local_times import LocalTimeField, OwnZoneField, read_local_time
from diagnostics.web.pages import respond

SHOWN = 50
LOCAL = "%Y-%m-%dT%H:%M"


class DeployForm(forms.Form):
    kind = forms.ChoiceField(choices=[(kind.value, kind.value.capitalize()) for kind in DeployKind])
    version = forms.CharField(max_length=200, help_text="Release, prompt version or commit.")
    source = forms.CharField(max_length=200, required=False, help_text="The agent or service.")
    environment = forms.CharField(max_length=200, required=False)
    at = LocalTimeField(label="Time")
    tz = OwnZoneField()
    note = forms.CharField(max_length=2000, required=False)

    def clean(self) -> dict[str, Any]:
        """Validate the fields as the API does, by the same model."""
        fields = self.cleaned_data
        try:
            optional = {name: fields.get(name) or None for name in ("source", "environment")}
            self.posted = PostedDeploy(
                at=read_local_time(fields.get("at", ""), fields.get("tz", "")),
                kind=DeployKind(fields.get("kind", "")),
                version=fields.get("version", ""),
                note=fields.get("note", ""),
                **optional,
            )
        except (ValidationError, ValueError):
            if not self.errors:
                self.add_error("at", "Not a valid time.")
        return fields


@member_form
def deploys(request: ConsoleRequest) -> HttpResponse:
    """Show the latest deploys; add one."""
    form = DeployForm(request.POST or None, initial={"tz": request.session.get("zone", "")})
    if request.method == "POST":
        require_actor(request)
        if form.is_valid():
            with transaction.atomic():
                row, is_new = record_deploy(request.project.pk, form.posted)
                if is_new:
                    place = {"source": row.source, "environment": row.environment}
                    details = {**place, "at": row.at.isoformat()}
                    note(request.project.pk, request.user, "deploy.marked", str(row), details)
            words = "Deploy marked" if is_new else "This deploy was marked before"
            messages.success(request, f"{words}: {row.kind} {row.version}.")
            return redirect("deploys")
    context = {
        "section": "ingest",
        "tab": "deploys",
        "form": form,
        "rows": reported_deploys(request.project.pk)[:SHOWN],
        "may_act": may_act(request),
    }
    return respond(request, "ingest/deploys", context, "Deploys")

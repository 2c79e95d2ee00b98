"""Settings of providers and models: references to credentials, output modes, tests."""

from django.contrib import messages
from django.db import transaction
from django.db.models import Prefetch
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect

from agents.llm.forms import LanguageModelForm, ProviderForm
from agents.llm.model_test import request_model_test
from agents.llm.models import MODEL_CHECK_WAIT, LanguageModel, ModelCheck, Provider
from diagnostics import clock
from diagnostics.accounts.audit_log import note
from diagnostics.accounts.models import Project
from diagnostics.settings.frame import (
    require_proof,
    settings_action,
    settings_form,
    settings_page,
    show,
)
from diagnostics.web.pages import ConsoleRequest, user_of

OPEN_TAB = {"tab": "settings_providers"}


@settings_page
def providers(request: ConsoleRequest) -> HttpResponse:
    rows = Provider.objects.filter(project=request.project).order_by("name")
    models = LanguageModel.objects.order_by("name").select_related("check_row")
    requested = ModelCheck.objects.filter(project=request.project, status=ModelCheck.Status.ASKED)
    context = {
        "providers": rows.prefetch_related(Prefetch("language_models", models)),
        "waiting": requested.filter(asked_at__gt=clock.now() - MODEL_CHECK_WAIT).exists(),
    }
    return show(request, "providers", context, "Providers and models")


@settings_form
def provider(request: ConsoleRequest, identity: int | None = None) -> HttpResponse:
    row = _provider(request, identity) if identity else Provider(project=request.project)
    form = ProviderForm(
        request.POST or None,
        instance=row,
        project=request.project,
        runs_installation=request.user.is_superuser,
    )
    if request.method == "POST":
        require_proof(request)
        if form.is_valid():
            action = "provider.changed" if identity else "provider.created"
            _save(request, form, action, form.cleaned_data["name"])
            return redirect("settings_providers")
    heading = row.name if row.pk else "New provider"
    return show(request, "edit", {"form": form, "heading": heading, **OPEN_TAB}, "Provider")


@settings_form
def language_model(
    request: ConsoleRequest, provider_id: int, identity: int | None = None
) -> HttpResponse:
    owner = _provider(request, provider_id)
    new = LanguageModel(project=request.project, provider=owner)
    row = _model(request, identity) if identity else new
    if row.provider_id != owner.pk:
        raise Http404
    form = LanguageModelForm(request.POST or None, instance=row, provider=owner)
    if request.method == "POST":
        require_proof(request)
        if form.is_valid():
            action = "model.changed" if identity else "model.created"
            target = f"{owner.name}/{form.cleaned_data['name']}"
            _save(request, form, action, target)
            return redirect("settings_providers")
    heading = f"{row.name if row.pk else 'New model'} · {owner.name}"
    return show(request, "edit", {"form": form, "heading": heading, **OPEN_TAB}, "Model")


@settings_action
def test_model(request: ConsoleRequest, identity: int) -> HttpResponse:
    request_model_test(_model(request, identity), user_of(request))
    return redirect("settings_providers")


def _save(
    request: ConsoleRequest, form: ProviderForm | LanguageModelForm, action: str, target: str
) -> None:
    """Save with an audit entry; a new default replaces the previous one."""
    with transaction.atomic():
        if form.cleaned_data.get("is_default"):
            Project.objects.select_for_update().get(pk=request.project.pk)
            models = LanguageModel.objects.filter(project=request.project)
            models.filter(is_default=True).exclude(pk=form.instance.pk).update(is_default=False)
        form.save()
        changes = {name: str(form.cleaned_data[name]) for name in form.changed_data}
        note(request.project.pk, user_of(request), action, target, dict(changes))
    messages.success(request, f"{target} is saved.")


def _provider(request: ConsoleRequest, identity: int) -> Provider:
    return get_object_or_404(Provider, project=request.project, pk=identity)


def _model(request: ConsoleRequest, identity: int) -> LanguageModel:
    models = LanguageModel.objects.filter(project=request.project).select_related("provider")
    return get_object_or_404(models, pk=identity)

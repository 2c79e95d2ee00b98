"""Projects: rename, create or switch to one; its quotas and retention; how mail is sent."""

from smtplib import SMTPException
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_POST

from diagnostics import clock
from diagnostics.accounts import authentication
from diagnostics.accounts.audit_log import note
from diagnostics.accounts.models import Membership, Project
from diagnostics.ingest.models import Quota, Usage
from diagnostics.outbound.mail import backend_words, compose, unsent_words
from diagnostics.outbound.smtp import answers_of
from diagnostics.redaction.redactor import redact
from diagnostics.settings.forms import ProjectForm, QuotaForm
from diagnostics.settings.frame import settings_form, settings_page, show
from diagnostics.store.retention import daily_growth_bytes, storage_sizes
from diagnostics.web.pages import CHOSEN, ConsoleRequest, member_page, memberships_of, user_of


@member_page
def settings_index(request: ConsoleRequest) -> HttpResponse:
    return redirect("settings_projects")


@settings_form
def projects(request: ConsoleRequest) -> HttpResponse:
    posted = request.POST.get("do")
    rename = ProjectForm(
        request.POST if posted == "rename" else None,
        instance=Project.objects.get(pk=request.project.pk),
        prefix="rename",
    )
    create = ProjectForm(request.POST if posted == "create" else None, prefix="create")
    if rename.is_bound and rename.is_valid():
        before, after = request.project.name, rename.cleaned_data["name"]
        with transaction.atomic():
            Project.objects.filter(pk=request.project.pk).update(name=after)
            details = {"from": before}
            note(request.project.pk, user_of(request), "project.renamed", after, details)
        messages.success(request, f"Project renamed to {after}.")
        return redirect("settings_projects")
    if create.is_bound and create.is_valid():
        name, by = create.cleaned_data["name"], user_of(request)
        with transaction.atomic():
            project = Project.objects.create(slug=create.make_slug(), name=name)
            # Its creator becomes its administrator.
            Membership.objects.create(project=project, user=by, role=Membership.Role.ADMIN)
            note(project.pk, by, "project.created", name, {"slug": project.slug})
        messages.success(request, f"{name} created.")
        request.session[CHOSEN] = project.slug
        return redirect("settings_projects")
    return show(request, "projects", {"rename": rename, "create": create}, "Projects")


@login_required
@require_POST
def switch_project(request: HttpRequest) -> HttpResponse:
    """Switch to a project; 404 for an unknown project or one of others."""
    slug = request.POST.get("project", "")
    if all(m.project.slug != slug for m in memberships_of(request)):
        raise Http404
    request.session[CHOSEN] = slug
    return redirect("now")


DAYS_SHOWN = 14


@settings_form
def quotas(request: ConsoleRequest) -> HttpResponse:
    own = Quota.objects.filter(project=request.project).first()
    form = QuotaForm(request.POST or None, instance=own or Quota(project=request.project))
    if request.method == "POST" and form.is_valid():
        changes: dict[str, Any] = {name: form.cleaned_data[name] for name in form.changed_data}
        with transaction.atomic():
            form.save()
            target = request.project.name
            note(request.project.pk, user_of(request), "quota.changed", target, changes)
        authentication.forget_all()
        messages.success(request, "Saved. Takes effect within 5 seconds.")
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


TABLES_SHOWN = 12
KEPT = (
    ("Payloads (previews, errors, repairs)", "KEEP_PAYLOAD_DAYS", "days"),
    ("Events", "KEEP_EVENT_DAYS", "days"),
    ("Minute counts", "KEEP_MINUTE_HOURS", "hours"),
    ("Hour counts", "KEEP_HOUR_MONTHS", "months"),
    ("Evaluations of alert rules", "KEEP_EVALUATION_DAYS", "days"),
    ("Reports", "KEEP_REPORT_DAYS", "days"),
    ("Raw text of goals and plan runs, after their end", "WORKING_KEEP_HOURS", "hours"),
)


@settings_page
def retention(request: ConsoleRequest) -> HttpResponse:
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


REASON_BYTES = 200


@settings_form
def mail(request: ConsoleRequest) -> HttpResponse:
    address = user_of(request).email
    if request.method == "POST":
        if address:
            _send_test(request, address)
        else:
            messages.error(request, "Your account has no email address.")
        return redirect("settings_mail")
    context = {
        "backend": backend_words(),
        "is_smtp": not unsent_words(),
        "host": settings.EMAIL_HOST,
        "port": settings.EMAIL_PORT,
        "tls": settings.EMAIL_USE_TLS or settings.EMAIL_USE_SSL,
        "signs_in_as": settings.EMAIL_HOST_USER,
        "sender": settings.DEFAULT_FROM_EMAIL,
        "base_url": settings.FAILSOFT_BASE_URL,
        "address": address,
    }
    return show(request, "mail", context, "Mail")


def _send_test(request: ConsoleRequest, address: str) -> None:
    sender = user_of(request).get_username()
    message = compose("Test mail of Failsoft", "test", {"by": sender}, [address])
    note(request.project.pk, user_of(request), "mail.tested", "test mail")
    try:
        message.send()
    except (SMTPException, OSError) as error:
        answer = "".join(answers_of(error, [address]).values())
        reason = redact(answer or f"{type(error).__name__}: {error}", REASON_BYTES)
        messages.error(request, f"Not sent: {reason}")
    else:
        messages.success(request, unsent_words() or f"Sent to {address}.")

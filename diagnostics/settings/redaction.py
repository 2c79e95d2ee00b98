"""The redaction page of a project: its rules, a test of a rule, redacting stored data again."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.contrib import messages
from django.db import IntegrityError, transaction
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect

from diagnostics.accounts.audit_log import note
from diagnostics.failures.excerpt import Piece, pieces
from diagnostics.redaction.redactor import redact
from diagnostics.redaction.rescrub import latest_rescrub, request_rescrub, rules_of, source_count
from diagnostics.redaction.rules import RedactionRule, forget_rules
from diagnostics.settings.forms import RedactionRuleForm
from diagnostics.settings.frame import settings_action
from diagnostics.web.pages import ConsoleRequest, member_form, respond
from failsoft.redaction import FAILED, Redactor
from failsoft.redaction.re2_search import MOST_RULES, OwnRule, OwnRules

SAMPLE_BYTES = 16_384
TOO_SLOW = f"Too slow: the text would be replaced by {FAILED}."
ALONE = Redactor([], {})


@dataclass(frozen=True, slots=True)
class Trial:
    """A redacted sample text, in pieces for highlighting."""

    pieces: tuple[Piece, ...]
    count: int


@member_form
def redaction(request: ConsoleRequest) -> HttpResponse:
    return _submit(request) if request.method == "POST" else _show(request, RedactionRuleForm())


@settings_action
def _submit(request: ConsoleRequest) -> HttpResponse:
    form, trial = RedactionRuleForm(request.POST), None
    if form.is_valid():
        if "try" in request.POST:
            trial = try_rule(form.cleaned_data)
            if trial is None:
                form.add_error("pattern", TOO_SLOW)
        elif _save(request, form):
            return redirect("redaction")
    return _show(request, form, trial)


def try_rule(fields: Mapping[str, str]) -> Trial | None:
    """Count the matches of a pattern in a text; other secrets are masked too. None: too slow."""
    own = OwnRules([OwnRule(fields["kind"], fields["pattern"])])
    text = ALONE.with_own(own).redact(fields["text"], SAMPLE_BYTES).text
    if text == FAILED:
        return None
    count = text.count(f"[REDACTED:{fields['kind']}]")
    return Trial(pieces(redact(text, SAMPLE_BYTES)), count)


@settings_action
def switch_rule(request: ConsoleRequest, identity: int) -> HttpResponse:
    rule = get_object_or_404(RedactionRule, project=request.project, pk=identity)
    rule.enabled = bool(request.POST.get("enabled"))
    with transaction.atomic():
        rule.save(update_fields=["enabled"])
        details = {"enabled": rule.enabled}
        note(request.project.pk, request.user, "rule.switched", rule.name, details)
    forget_rules()
    messages.success(request, f"{rule.name} {'enabled' if rule.enabled else 'disabled'}.")
    return redirect("redaction")


@settings_action
def redact_again(request: ConsoleRequest) -> HttpResponse:
    if request_rescrub(request.project.pk, request.user.pk):
        note(request.project.pk, request.user, "redaction.repeated", "all rows")
        messages.success(request, "Redaction of stored data started.")
    else:
        messages.info(request, "Already running.")
    return redirect("redaction")


def _save(request: ConsoleRequest, form: RedactionRuleForm) -> bool:
    fields = form.cleaned_data
    if RedactionRule.objects.filter(project=request.project).count() >= MOST_RULES:
        form.add_error(None, f"At most {MOST_RULES} rules per project.")
        return False
    try:
        with transaction.atomic():
            RedactionRule.objects.create(
                project=request.project,
                name=fields["name"],
                kind=fields["kind"],
                pattern=fields["pattern"],
                created_by_id=request.user.pk,
            )
            details = {"kind": fields["kind"]}
            note(request.project.pk, request.user, "rule.created", fields["name"], details)
    except IntegrityError:
        form.add_error("name", "A rule with this name exists.")
        return False
    forget_rules()
    messages.success(request, f"{fields['name']} saved; takes effect within 5 seconds.")
    return True


def _show(
    request: ConsoleRequest, form: RedactionRuleForm, trial: Trial | None = None
) -> HttpResponse:
    context = {
        "section": "settings",
        "tab": "redaction",
        "form": form,
        "trial": trial,
        "rules": rules_of(request.project.pk),
        "rescrub": latest_rescrub(request.project.pk),
        "source_count": source_count(),
    }
    return respond(request, "redaction/redaction", context, "Redaction · Settings")

"""Get started: sign in, create a key, send an event, see it; each step ticks itself off."""

from dataclasses import dataclass

from django.db import transaction
from django.db.models import Q
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.audit_log import note
from diagnostics.accounts.models import ApiKey
from diagnostics.accounts.projects import issue_key, place_of_key
from diagnostics.settings.frame import keep_once, require_proof, take_once, unkept
from diagnostics.store.models import Version
from diagnostics.store.run_models import AgentRun
from diagnostics.web.access import ConsoleRequest, may_administer, member_view, user_of
from diagnostics.web.pages import respond
from failsoft.json_values import JSON

KEY_NAME = "first agent"
DEMO = "demo-"
"""What the sources and run ids of demonstration data begin with: they tick no step."""


@dataclass(frozen=True, slots=True)
class SetupStep:
    """One of the four, and whether it is done."""

    name: str
    says: str
    url: str
    is_done: bool


@require_http_methods(["GET", "HEAD", "POST"])
@member_view
def setup(request: ConsoleRequest) -> HttpResponse:
    """Show the four steps; create a key and fill it into the snippets, shown once."""
    if request.method == "POST" and may_administer(request):
        require_proof(request)
        return keep_once(request, "setup", {"key": _make_key(request)})
    key = take_once(request, "setup").get("key", "") if not request.htmx else ""
    steps = steps_of(request.project.pk)
    context = {
        "section": "ingest",
        "tab": "setup",
        "steps": steps,
        "is_done": all(step.is_done for step in steps),
        "next": next((step.name for step in steps if not step.is_done), None),
        "key": key,
        "shown_key": key or place_of_key(request.project),
    }
    answer = respond(request, "setup/setup", context, "Get started")
    return unkept(answer) if key else answer


def steps_of(project_id: int) -> list[SetupStep]:
    """Say how far a project has come."""
    now = clock.now()
    live = Q(expires_at=None) | Q(expires_at__gt=now)
    has_key = ApiKey.objects.filter(live, project=project_id, revoked_at=None).exists()
    sent = AgentRun.objects.filter(project=project_id).exclude(
        Q(source__startswith=DEMO) | Q(correlation_id__startswith=DEMO)
    )
    counted = Version.objects.filter(project=project_id).exclude(source__startswith=DEMO)
    return [
        SetupStep("Sign in", "You are here.", reverse("account"), is_done=True),
        SetupStep("Create a key", "An agent sends it with each request.", "#key", is_done=has_key),
        SetupStep("Send an event", "With any client below.", "#send", is_done=sent.exists()),
        SetupStep("See it", "It is counted on Now.", reverse("now"), is_done=counted.exists()),
    ]


def _make_key(request: ConsoleRequest) -> str:
    with transaction.atomic():
        issued = issue_key(request.project, KEY_NAME, [Scope.INGEST, Scope.READ])
        told: dict[str, JSON] = {"key_id": issued.row.key_id, "scopes": ["ingest", "read"]}
        note(request.project.pk, user_of(request), "key.created", KEY_NAME, told)
    return issued.text

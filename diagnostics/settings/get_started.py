"""First steps: sign in, make a key, send an event, see it; each ticks itself off."""

from dataclasses import dataclass

from django.db import transaction
from django.db.models import Q
from django.http import HttpResponse
from django.views.decorators.http import require_http_methods

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.audit_log import note
from diagnostics.accounts.models import ApiKey
from diagnostics.accounts.projects import issue_key, place_of_key
from diagnostics.settings.frame import require_proof, unkept
from diagnostics.store.models import Event, Series
from diagnostics.web.access import ConsoleRequest, may_administer, member_view, user_of
from diagnostics.web.pages import respond
from failsoft.json_values import JSON

KEY_NAME = "first agent"


@dataclass(frozen=True, slots=True)
class SetupStep:
    """One of the four, and whether it is done."""

    name: str
    says: str
    is_done: bool


@require_http_methods(["GET", "HEAD", "POST"])
@member_view
def setup(request: ConsoleRequest) -> HttpResponse:
    """Show the four steps; make a key and fill it into the snippets, this once."""
    key = ""
    if request.method == "POST" and may_administer(request):
        require_proof(request)
        key = _make_key(request)
    steps = steps_of(request.project.pk)
    context = {
        "section": "setup",
        "steps": steps,
        "is_done": all(step.is_done for step in steps),
        "next": next((step.name for step in steps if not step.is_done), None),
        "key": key,
        "shown_key": key or place_of_key(request.project),
    }
    answer = respond(request, "setup/setup", context, "First steps")
    return unkept(answer) if key else answer


def steps_of(project_id: int) -> list[SetupStep]:
    """Say how far a project has come."""
    now = clock.now()
    live = Q(expires_at=None) | Q(expires_at__gt=now)
    has_key = ApiKey.objects.filter(live, project=project_id, revoked_at=None).exists()
    # Only rows of the last days are looked at: the newest one is enough.
    sent = Event.objects.filter(project=project_id).order_by("-occurred_at")[:1]
    seen = Series.objects.filter(project=project_id).exists()
    return [
        SetupStep("Sign in", "You are here.", is_done=True),
        SetupStep("Make a key", "An agent shows it with each request.", is_done=has_key),
        SetupStep("Send an event", "Any of the three ways below.", is_done=bool(sent)),
        SetupStep("See it", "It is counted, and stands on the Now page.", is_done=seen),
    ]


def _make_key(request: ConsoleRequest) -> str:
    with transaction.atomic():
        issued = issue_key(request.project, KEY_NAME, [Scope.INGEST, Scope.READ])
        told: dict[str, JSON] = {"key_id": issued.row.key_id, "scopes": ["ingest", "read"]}
        note(request.project.pk, user_of(request), "key.created", KEY_NAME, told)
    return issued.text

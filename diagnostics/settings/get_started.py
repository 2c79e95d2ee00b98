"""Get started: sign in, create a key, send an event, see it; steps are detected as done."""

from dataclasses import dataclass

from django.db import transaction
from django.db.models import F, Q
from django.http import HttpResponse
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.audit_log import note
from diagnostics.accounts.models import ApiKey
from diagnostics.accounts.projects import LOCAL_KEY_NAME, issue_key, place_of_key
from diagnostics.ingest.key_counts import KEEP
from diagnostics.ingest.models import KeyMinute
from diagnostics.ingest.unchecked import unchecked_of
from diagnostics.ingest.views import TEST_RUN, TEST_SOURCE
from diagnostics.settings.frame import keep_once, require_proof, take_once, unkept
from diagnostics.store.models import Version
from diagnostics.store.run_models import AgentRun
from diagnostics.web.access import ConsoleRequest, may_administer, member_view, user_of
from diagnostics.web.pages import respond
from failsoft.json_values import JSON

KEY_NAME = "first agent"
DEMO = "demo-"
"""The prefix of sources of demo data, which completes no step."""


@dataclass(frozen=True, slots=True)
class SetupStep:
    """One of the four steps, and whether it is done."""

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
    response = respond(request, "setup/setup", context, "Get started")
    return unkept(response) if key else response


def steps_of(project_id: int) -> list[SetupStep]:
    """Return the steps of a project; the planner's own goals complete none."""
    live = Q(expires_at=None) | Q(expires_at__gt=clock.now())
    # A fresh installation creates a key itself: it counts once it is used.
    is_used = ~Q(name=LOCAL_KEY_NAME) | Q(last_used_at__isnull=False)
    keys = ApiKey.objects.filter(live, is_used, project=project_id, revoked_at=None)
    has_sent = _has_sent(project_id)
    counted = Version.objects.filter(project=project_id).exclude(source__startswith=DEMO)
    return [
        SetupStep("Sign in", "You are here.", reverse("account"), is_done=True),
        SetupStep(
            "Create a key", "An agent sends it with each request.", "#key", is_done=keys.exists()
        ),
        SetupStep("Send an event", _sent_so_far(project_id, has_sent), "#send", is_done=has_sent),
        SetupStep(
            "See it", "It is counted on Now.", reverse("now"), is_done=has_sent and counted.exists()
        ),
    ]


def _sent_so_far(project_id: int, has_sent: bool) -> str:
    """Say how to send an event, or why those that came do not count."""
    unchecked = () if has_sent else unchecked_of(project_id, clock.now())
    return f"{unchecked[0].sentence}." if unchecked else "With any client below."


def _has_sent(project_id: int) -> bool:
    """Whether an event was sent with a key, or as the test event of these pages.

    An answer that nothing checked says nothing yet.
    """
    by_key = KeyMinute.objects.filter(
        Q(stored__gt=F("unchecked")) | Q(duplicate__gt=0), project=project_id
    )
    # Minutes are kept for a week; the last use of a key is kept forever.
    used_before = ApiKey.objects.filter(
        project=project_id, scopes__contains=[Scope.INGEST], last_used_at__lt=clock.now() - KEEP
    )
    # By the prefix, which the primary key finds among millions of runs.
    tried = AgentRun.objects.filter(
        project=project_id, correlation_id__startswith=TEST_RUN, source=TEST_SOURCE
    )
    return by_key.exists() or used_before.exists() or tried.exists()


def _make_key(request: ConsoleRequest) -> str:
    with transaction.atomic():
        issued = issue_key(request.project, KEY_NAME, [Scope.INGEST, Scope.READ])
        details: dict[str, JSON] = {"key_id": issued.row.key_id, "scopes": ["ingest", "read"]}
        note(request.project.pk, user_of(request), "key.created", KEY_NAME, details)
    return issued.text

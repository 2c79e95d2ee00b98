"""Instrument your agent: the lines of each client, and four steps that are detected as done.

The table of clients is `clients.toml`.
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from textwrap import indent
from typing import Any

from django.db.models import F, Q, QuerySet
from django.http import HttpResponse
from django.urls import reverse

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import ApiKey
from diagnostics.accounts.projects import LOCAL_KEY_NAME, create_key, place_of_key
from diagnostics.failures.wording import KINDS
from diagnostics.figures import Tone
from diagnostics.ingest.key_counts import KEEP
from diagnostics.ingest.models import KeyMinute
from diagnostics.ingest.views import TEST_SOURCE, unchecked_of
from diagnostics.settings.frame import keep_once, require_proof, settings_action, take_once, unkept
from diagnostics.store.models import Event
from diagnostics.web.pages import ConsoleRequest, may_administer, member_form, respond, user_of
from failsoft import VERSION
from failsoft.events import EventKind

TABLE: Mapping[str, Any] = tomllib.loads(
    (Path(__file__).parent / "clients.toml").read_text(encoding="utf-8")
)
LIBRARY = f"failsoft[otel] @ {{url}}/packages/failsoft-{VERSION}-py3-none-any.whl"
QUOTED = frozenset(" [")  # in a shell
KEY_NAME = "first agent"
DEMO = "demo-"
"""The prefix of sources of demo data, which completes no step."""
OWN = (TEST_SOURCE, "planner", "failsoft check")
"""Sources of ours, which are no agents."""
CALLS = (EventKind.SUCCEEDED, EventKind.PARSE_INVALID, EventKind.PROVIDER_ERROR)
RECENT = timedelta(days=7)
ANSWERS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class ClientLines:
    """What to type in a shell, what to write into a file, and how to run it."""

    name: str
    label: str
    shell: str
    file: str
    code: str
    start: str


def clients_for(url: str, key: str) -> Iterator[ClientLines]:
    """Yield the lines of every client for a server; `key` may be an expression of a shell."""
    for name, own in TABLE["clients"].items():
        row = {**TABLE["defaults"], **own}
        packages = [*([LIBRARY] if row["library"] else []), *row["packages"]]
        values = {
            "packages": " ".join(
                f'"{package}"' if QUOTED & set(package) else package for package in packages
            ),
            "imports": row["imports"].strip(),
            "call": indent(row["call"].strip(), "    ").lstrip(),
            "url": url,
            "key": key,
        }
        shell, code = f"{row['install']}\n{row['connect'].strip()}".strip(), row["code"].strip()
        for key_of_value, value in values.items():
            mark = f"{{{key_of_value}}}"
            shell, code = shell.replace(mark, value), code.replace(mark, value)
        yield ClientLines(name, row["label"], shell, row["file"], code, row["start"])


@dataclass(frozen=True, slots=True)
class SetupStep:
    name: str
    says: str
    url: str
    is_done: bool


@settings_action
def _issue(request: ConsoleRequest) -> HttpResponse:
    require_proof(request)
    scopes = [Scope.INGEST, Scope.READ]
    issued = create_key(request.project, user_of(request), KEY_NAME, scopes)
    return keep_once(request, "setup", {"key": issued.text})


@member_form
def setup(request: ConsoleRequest) -> HttpResponse:
    if request.method == "POST" and may_administer(request):
        return _issue(request)
    key = take_once(request, "setup").get("key", "") if not request.htmx else ""
    steps = steps_of(request.project.pk)
    shown_key = key or place_of_key(request.project)
    context = {
        "section": "ingest",
        "tab": "setup",
        "steps": steps,
        "is_done": all(step.is_done for step in steps),
        "next": next((step.name for step in steps if not step.is_done), None),
        "answers": [_judged(event) for event in _calls(request.project.pk)[:ANSWERS_SHOWN]],
        "clients": list(clients_for(request.build_absolute_uri("/").rstrip("/"), shown_key)),
        "key": key,
        "shown_key": shown_key,
    }
    response = respond(request, "setup/setup", context, "Instrument your agent")
    return unkept(response) if key else response


def steps_of(project_id: int) -> list[SetupStep]:
    """Return the steps of a project; the planner's own goals complete none."""
    live = Q(expires_at=None) | Q(expires_at__gt=clock.now())
    # A fresh installation creates a key itself: it counts once it is used.
    is_used = ~Q(name=LOCAL_KEY_NAME) | Q(last_used_at__isnull=False)
    keys = ApiKey.objects.filter(live, is_used, project=project_id, revoked_at=None)
    minutes = KeyMinute.objects.filter(Q(stored__gt=0) | Q(duplicate__gt=0), project=project_id)
    # Minutes are kept for a month; the last use of a key is kept forever.
    used_before = ApiKey.objects.filter(
        project=project_id, scopes__contains=[Scope.INGEST], last_used_at__lt=clock.now() - KEEP
    ).exists()
    has_sent = used_before or minutes.exists()
    checked = minutes.filter(Q(stored__gt=F("unchecked")) | Q(duplicate__gt=0))
    # A failed call has no answer to check.
    judged = _calls(project_id).exclude(kind=EventKind.PROVIDER_ERROR).filter(unchecked=None)
    is_checked = used_before or (checked.exists() and judged.exists())
    # Why the answers that came do not count.
    unchecked = () if is_checked else unchecked_of(project_id, clock.now())
    says = f"{unchecked[0].sentence}." if unchecked else "Valid or not, with line and column."
    return [
        SetupStep("Sign in", "You are here.", reverse("account"), is_done=True),
        SetupStep(
            "Create a key", "An agent sends it with each request.", "#key", is_done=keys.exists()
        ),
        SetupStep("Send an answer", "With any client below.", "#send", is_done=has_sent),
        SetupStep("See it checked", says, "#steps", is_checked),
    ]


def _calls(project_id: int) -> QuerySet[Event]:
    """Return what agents sent in the last days, the newest first; without demo data."""
    since = clock.now() - RECENT
    recent = Event.objects.filter(project=project_id, occurred_at__gte=since, kind__in=CALLS)
    of_agents = Q(source=None) | ~(Q(source__startswith=DEMO) | Q(source__in=OWN))
    return recent.filter(of_agents).order_by("-occurred_at")


def _judged(event: Event) -> tuple[Event, Tone, str]:
    if event.kind == EventKind.SUCCEEDED:
        is_checked = event.unchecked is None
        tone: Tone = "good" if is_checked else "warn"
        return event, tone, "valid" if is_checked else "unchecked"
    says = event.parse_error_type or event.call_error_type or event.kind
    return event, "bad", KINDS.get(says, says)

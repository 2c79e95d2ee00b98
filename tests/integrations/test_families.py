"""Real instrumentations and frameworks, asked for scripted answers: what arrives is what was."""

import os
import shutil

import pytest
from pytest_django.live_server_helper import LiveServer

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.ingest.agent_schemas import register_schema
from diagnostics.ingest.log_answers import PATIENCE, settle_verdicts
from diagnostics.ingest.models import SpanVerdict
from diagnostics.ingest.span_runs import settle_runs
from diagnostics.store.models import Event
from diagnostics.store.run_models import AgentRun
from failsoft.events import EventKind
from tests.integrations.clients import CELLS, REPLIES, Client, clients_of, families, running_client
from tests.integrations.environments import prepare
from tests.integrations.families.schema import PLAN
from tests.integrations.matrix import Matrix, faults_of
from tests.integrations.provider import Provider
from tests.integrations.relay import running_relay

pytestmark = [pytest.mark.integrations, pytest.mark.django_db(transaction=True)]
CHOSEN = os.environ.get("FAMILIES", "").split() or families()
# The others are clients that are generated (test_generated_clients.py).
CLIENTS = [client for family in CHOSEN if family in families() for client in clients_of(family)]


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.title)
def test_every_answer_gives_the_event_that_is_true_of_it(
    client: Client, project: Project, live_server: LiveServer, provider: Provider, matrix: Matrix
) -> None:
    if client.script.endswith(".cjs") and shutil.which("npm") is None:
        pytest.skip("Node is not installed")
    prepare(client.family)
    register_schema(project, client.node, PLAN, "3")
    key = issue_key(project, "agent", [Scope.INGEST]).text
    seen: set[object] = set()
    matrix.note_untold(client)
    with (
        running_relay(live_server.url) as endpoint,
        running_client(client, endpoint, key) as running,
    ):
        for cell, scripted in CELLS.items():
            replies = [dict(REPLIES[name]) for name in scripted["replies"]]
            provider.play(replies, is_tool=client.tools or scripted.get("tools", False))
            running.play(cell, provider.url)
            settle()
            calls = Event.objects.exclude(kind=EventKind.DEGRADED).order_by("occurred_at")
            events = [one for one in calls if one.pk not in seen]
            seen |= {event.pk for event in events}
            matrix.note(client, cell, faults_of(client, cell, events, provider.requests))
    wrong = [line for line in matrix.wrong if line.startswith(f"{client.title} ")]
    assert not wrong, "\n".join(wrong)


def settle() -> None:
    """Let the time pass that a log record waits for its span, and a run for its last call."""
    SpanVerdict.objects.update(received_at=clock.now() - 2 * PATIENCE)
    settle_verdicts()
    AgentRun.objects.exclude(settles_at=None).update(settles_at=clock.now())
    settle_runs()

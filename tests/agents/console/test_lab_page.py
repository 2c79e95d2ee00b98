"""The parse lab: paste, see, compare, replay; nothing is kept."""

from datetime import datetime
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from diagnostics.accounts.models import Project
from diagnostics.failures.models import FailureGroup
from diagnostics.ingest.agent_schemas import register_schema
from diagnostics.ingest.recording import record
from failsoft.events import PostedEvent as WireEvent
from tests.agents.conftest import tables_holding
from tests.agents.console.conftest import Read
from tests.console import post_and_fold
from tests.diagnostics.builders import wire_event

pytestmark = pytest.mark.django_db
ON = {"recover": "1", "lenient": "1"}
DAMAGED = "Sure!\n{'a': 1,\n 'b': 2,}"
A_SCHEMA: dict[str, Any] = {"type": "object", "required": ["b"]}


def read_it(client: Client, text: str, **more: str) -> str:
    answer = client.post("/lab/", {"text": text, "schema": "none", **ON, **more})
    assert answer.status_code == 200
    return answer.content.decode()


def test_repairs_stand_at_their_place_in_the_text(client: Client) -> None:
    html = read_it(client, DAMAGED)
    assert "prose 1:1, lossy" in html
    assert "trailing comma 3:8" in html
    assert "<mark>,</mark>" in html
    assert "&quot;b&quot;: 2" in html


def test_the_result_follows_the_button_that_asks_for_it(client: Client) -> None:
    html = read_it(client, DAMAGED)
    assert 'action="/lab/#readings"' in html
    assert html.index(">Parse</button>") < html.index('id="readings"') < html.index("prose 1:1")
    html = read_it(client, DAMAGED, schema="node:gone")
    assert html.index('id="readings"') < html.index('role="alert"')
    assert 'role="alert"' in read_it(client, DAMAGED, schema="node:\0")
    assert 'id="readings"' not in client.get("/lab/").content.decode()


def test_a_refusal_is_placed_and_strict_json_is_a_setting(client: Client) -> None:
    html = read_it(client, '{"a": 1,\n "a": 2}')
    assert "duplicate key" in html
    assert "line 2, column 2" in html
    answer = client.post("/lab/", {"text": DAMAGED, "schema": "none"})
    assert "strict JSON ends here" in answer.content.decode()


def test_two_settings_are_compared(client: Client) -> None:
    text = '{"steps": [{"step_id": "step_1", "dependencies": [], "tool": "x", "y": 1}]}'
    html = read_it(client, text, schema="plan", compare="1", schema_b="decision", recover_b="1")
    assert html.count('class="card reading"') == 2
    assert "recovering parser, exact types" in html
    assert read_it(client, text).count('class="card reading"') == 1


def test_schemas_of_agents_and_pasted_ones_are_checked(client: Client, project: Project) -> None:
    register_schema(project, "extract", A_SCHEMA, None)
    assert "extract, version 1" in client.get("/lab/").content.decode()
    html = read_it(client, '{"a": 1}', schema="node:extract")
    assert "schema_invalid" in html
    html = read_it(client, '{"b": 1}', schema="pasted", pasted='{"required": ["b"]}')
    assert "No repairs, no coercions" in html
    for pasted in ("{", '{"type": "poem"}', "[" * 100_000):
        html = read_it(client, "{}", schema="pasted", pasted=pasted)
        assert "The pasted schema is refused" in html
    assert "There is no such schema" in read_it(client, "{}", schema="node:other")


def test_secrets_are_masked_first_and_nothing_is_kept(client: Client) -> None:
    secret = "sk-ant-" + "api03-" + uuid4().hex * 2
    html = read_it(client, f'{{"note": "keep me {secret} zebra"}}')
    assert secret not in html
    assert "masked before parsing" in html
    assert "zebra" in html
    assert tables_holding("zebra") == []


def test_large_texts_are_read_and_not_repeated(client: Client) -> None:
    text = '{"a": [' + ",\n".join(["12345678"] * 20_000) + "]}"
    html = read_it(client, text)
    assert "too long to show here" in html
    assert len(html) < 60_000
    too_large = client.post("/lab/", {"text": "x" * (1024 * 1024 + 1), **ON})
    assert "larger than 1 MiB" in too_large.content.decode()


def test_hostile_answers_are_shown_as_text(client: Client) -> None:
    text = "<script>pwned=1</script>"
    html = read_it(client, f'{{"a": "{text}", "{text}": }}', finish_reason=text)
    assert text not in html


def failed(at: datetime, text: str | None, **changes: Any) -> dict[str, Any]:
    return wire_event(
        occurred_at=at.isoformat(),
        parse_error_type="not_json",
        raw_output_preview=text,
        schema="NextStepProposal",
        **changes,
    )


@pytest.fixture
def group(project: Project, at: datetime) -> FailureGroup:
    """Of four whole samples three are readable; one is cut, one has no text."""
    step = '{"kind": "finish", "answer": "done"}'
    texts = [step, f"Sure! {step}", step.replace('"', "'"), "nothing", "[" + "x" * 8190]
    events = [failed(at, text) for text in [*texts, None]]
    post_and_fold(project, *events)
    return FailureGroup.objects.get(project=project)


def test_a_stored_failure_fills_the_form(group: FailureGroup, client: Client, read: Read) -> None:
    html = read("/lab/", event=str(group.last_event_id))
    assert '<option value="next_step" selected>' in html
    for wrong in ("nonsense", str(uuid4())):
        assert client.get("/lab/", {"event": wrong}).status_code == 404


def test_a_failure_of_another_project_fills_nothing(client: Client, at: datetime) -> None:
    other = Project.objects.create(slug="o", name="Other")
    event = failed(at, "theirs")
    record(other.pk, [WireEvent.model_validate(event)])
    assert client.get("/lab/", {"event": event["event_id"]}).status_code == 404


def test_replay_counts_what_would_have_been_read(group: FailureGroup, read: Read) -> None:
    html = read(f"/failures/{group.pk}/replay/")
    assert "3 of 4 samples would parse" in html
    assert "1 may be incomplete and is counted separately" in html
    assert "1 more have no output" in html


def test_replay_takes_other_settings_and_schemas(group: FailureGroup, client: Client) -> None:
    path = f"/failures/{group.pk}/replay/"

    def told(**sent: str) -> str:
        return client.post(path, {"asked": "1", **sent}).content.decode()

    assert "1 of 4 samples" in told(target="next_step", lenient="1")
    assert "0 of 4 samples" in told(target="plan", **ON)
    assert "0 of 4 samples" in told(target="pasted", pasted='{"required": ["b"]}', **ON)
    assert "3 of 4 samples" in told(target="none", **ON)
    assert "refused" in told(target="pasted", pasted="{", **ON)
    assert "There is no such schema" in told(target="node:other", **ON)

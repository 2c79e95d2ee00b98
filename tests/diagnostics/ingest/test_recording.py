"""Events are stored once, redacted, whatever is sent twice."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from uuid import UUID

import pytest
from django.db import connection, connections
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from diagnostics.accounts.models import Project
from diagnostics.ingest.recording import Recorded, RecordStatus, record
from diagnostics.redaction import redactor
from diagnostics.redaction.rules import RedactionRule, forget_rules
from diagnostics.store.models import Event, EventIdentity, EventPayload
from failsoft.events import PostedEvent as WireEvent
from failsoft.identifiers import event_id
from failsoft.redaction import FAILED
from tests.diagnostics.builders import AT, degraded, make_event, succeeded

pytestmark = pytest.mark.django_db


def statuses(outcomes: list[Recorded]) -> list[str]:
    return [str(outcome.status) for outcome in outcomes]


def test_an_event_is_stored_narrow_with_its_detail_apart(project: Project) -> None:
    event = make_event(schema="NextStepProposal", attributes={"region": "eu"})
    assert statuses(record(project.pk, [event])) == ["created"]
    row = Event.objects.get(project=project)
    assert (row.event_id, row.occurred_at, row.name) == (event.event_id, AT, event.name)
    assert (row.node, row.schema, row.attempt) == ("next_step", "NextStepProposal", 1)
    detail = EventPayload.objects.get(project=project)
    assert detail.raw_output_preview == "not json"
    assert detail.validation_errors[0]["message"] == "expected an object"
    assert detail.attributes == {"region": "eu"}


@pytest.mark.parametrize(
    ("told", "served"),
    [
        ({}, None),
        # The requested one, and nobody behind it.
        ({"served_model": "fake-1"}, None),
        ({"served_model": "fake-1-2026"}, "fake-1-2026"),
        ({"upstream": "azure"}, "fake-1 at azure"),
        ({"served_model": "fake-1-2026", "upstream": "azure"}, "fake-1-2026 at azure"),
        # Nobody knows what was asked for.
        ({"model": None, "upstream": "azure"}, None),
        ({"model": None, "served_model": "fake-1"}, "fake-1"),
    ],
)
def test_who_answered_is_kept_with_the_event(
    project: Project, told: dict[str, str | None], served: str | None
) -> None:
    more = {"system_fingerprint": "fp_44709d6fcb", "reasoning_tokens": 448}
    record(project.pk, [make_event(**told, **more)])
    row = Event.objects.get(project=project)
    assert row.served == served
    other = told.get("served_model")
    assert row.served_model == (None if other == row.model else other)
    assert row.upstream == told.get("upstream")
    assert (row.system_fingerprint, row.reasoning_tokens) == ("fp_44709d6fcb", 448)


def test_same_event_twice_is_stored_once(project: Project) -> None:
    event = make_event()
    assert statuses(record(project.pk, [event])) == ["created"]
    assert statuses(record(project.pk, [event])) == ["duplicate"]
    assert statuses(record(project.pk, [event, event])) == ["duplicate"] * 2
    assert Event.objects.count() == EventPayload.objects.count() == 1


def test_same_id_with_other_content_is_a_conflict(project: Project) -> None:
    event = make_event()
    other = event.model_copy(update={"attempt": 2})
    assert statuses(record(project.pk, [event, other])) == ["created", "conflict"]
    assert statuses(record(project.pk, [other])) == ["conflict"]
    later = event.model_copy(update={"occurred_at": AT + timedelta(days=1)})
    assert statuses(record(project.pk, [later])) == ["conflict"]
    assert Event.objects.get().attempt == 1


def test_the_same_moment_in_another_zone_is_the_same_event(project: Project) -> None:
    event = make_event()
    text = AT.astimezone().isoformat()
    again = make_event(event_id=str(event.event_id), occurred_at=text)
    assert statuses(record(project.pk, [event, again])) == ["created", "duplicate"]


def test_an_id_belongs_to_its_project(project: Project) -> None:
    second = Project.objects.create(slug="p2", name="P2")
    event = make_event()
    assert statuses(record(project.pk, [event])) == ["created"]
    assert statuses(record(second.pk, [event])) == ["created"]


def test_outcomes_come_in_the_order_of_the_batch(project: Project) -> None:
    events = [make_event() for _ in range(20)]
    known = record(project.pk, events[5:10])
    assert statuses(known) == ["created"] * 5
    outcomes = record(project.pk, events)
    assert [o.index for o in outcomes] == list(range(20))
    expected = ["created"] * 5 + ["duplicate"] * 5 + ["created"] * 10
    assert statuses(outcomes) == expected


def test_good_attempts_carry_no_payload_unless_read_leniently(project: Project) -> None:
    plain = WireEvent.model_validate(succeeded())
    repaired = WireEvent.model_validate(
        succeeded(repairs=[{"kind": "trailing_comma", "line": 3, "column": 7}])
    )
    record(project.pk, [plain, repaired])
    assert Event.objects.count() == 2
    detail = EventPayload.objects.get()
    assert detail.event_id == repaired.event_id
    assert detail.repairs == [{"kind": "trailing_comma", "line": 3, "column": 7, "lossless": True}]


def test_an_event_older_than_its_identity_is_still_stored_once(project: Project) -> None:
    event = make_event()
    record(project.pk, [event])
    EventIdentity.objects.all().delete()
    assert statuses(record(project.pk, [event])) == ["duplicate"]
    assert Event.objects.count() == 1


def test_nothing_recorded_survives_a_rollback_of_the_caller(project: Project) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SAVEPOINT caller")
        record(project.pk, [make_event()])
        cursor.execute("ROLLBACK TO SAVEPOINT caller")
    assert Event.objects.count() == EventIdentity.objects.count() == 0


def test_nul_and_lone_surrogates_are_replaced(project: Project) -> None:
    event = make_event(raw_output_preview="a\0b", source="s\0")
    event = event.model_copy(update={"finish_reason": "x\ud800"})
    record(project.pk, [event])
    assert EventPayload.objects.get().raw_output_preview == "a\ufffdb"
    row = Event.objects.get()
    assert (row.source, row.finish_reason) == ("s\ufffd", "x\ufffd")


def test_s0_29_a_degradation_is_one_event_with_reason_and_status(project: Project) -> None:
    event = WireEvent.model_validate(degraded())
    record(project.pk, [event, event])
    row = Event.objects.get()
    assert (row.name, row.attempts) == ("graph.next_step.degraded", 2)
    assert (row.reason, row.status) == ("next_step_parse_failed", "failed")


def test_s0_40_the_terminal_event_is_told_by_what_its_attempts_were_told_by(
    project: Project,
) -> None:
    run = {"correlation_id": "run-7", "cycle": 2, "provider": "a", "model": None}
    attempts = [make_event(attempt=number, **run) for number in (1, 2)]
    record(project.pk, [*attempts, WireEvent.model_validate(degraded(**run))])
    fields = ("correlation_id", "cycle", "provider", "model")
    told = set(Event.objects.values_list(*fields))
    assert told == {("run-7", 2, "a", None)}
    kinds = [event.kind for event in Event.objects.all()]
    terminal = Event.objects.get(kind="degraded")
    assert kinds.count("parse_invalid") == terminal.attempts == 2


def test_s0_62_events_carry_validation_details_and_attempt_counts(project: Project) -> None:
    details = [{"path": "/kind", "message": "not allowed", "line": 1, "column": 9}]
    record(project.pk, [make_event(attempt=2, validation_errors=details)])
    assert Event.objects.get().attempt == 2
    (item,) = EventPayload.objects.get().validation_errors
    assert (item["path"], item["line"], item["column"]) == ("/kind", 1, 9)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(max_size=300), min_size=7, max_size=7))
def test_any_text_in_any_field_is_stored(project: Project, texts: list[str]) -> None:
    names = ("correlation_id", "provider", "model", "source", "finish_reason")
    fields = {name: text[:200] or "x" for name, text in zip(names, texts[:5], strict=True)}
    event = make_event(raw_output_preview=texts[5], attributes={"a": texts[6]}, **fields)
    assert statuses(record(project.pk, [event])) == ["created"]


def test_x16_a_redelivered_attempt_is_the_same_event(project: Project) -> None:
    def derive() -> UUID:
        return event_id(AT, project.pk, "run-1", "plan", 1, 1, "graph.plan.succeeded")

    first = make_event(event_id=str(derive()))
    second = make_event(event_id=str(derive()))
    assert statuses(record(project.pk, [first])) == ["created"]
    assert statuses(record(project.pk, [second])) == ["duplicate"]


@pytest.mark.django_db(transaction=True)
def test_m_4_fifty_identical_posts_at_once_store_one_row(project: Project) -> None:
    events = [make_event() for _ in range(3)]

    def post(turn: int) -> list[str]:
        try:
            batch = events if turn % 2 else events[::-1]
            return statuses(record(project.pk, batch))
        finally:
            connections.close_all()

    with ThreadPoolExecutor(10) as pool:
        answers = [status for turn in pool.map(post, range(50)) for status in turn]
    assert answers.count("created") == 3
    assert answers.count(RecordStatus.DUPLICATE) == 147
    assert Event.objects.count() == EventIdentity.objects.count() == 3


FULL = {
    "latency_ms": 812, "input_tokens": 1204, "output_mode": "json", "temperature": 0.2,
    "attributes": {"customer": 12_345_678_901_234, "region": "eu", "share": 0.5, "count": 3},
    "repairs": [{"kind": "trailing_comma", "line": 2, "column": 7}],
}  # fmt: skip


def test_a_redactor_that_fails_leaves_its_mark_in_texts_and_none_in_numbers(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redactor, "_keeper", None)
    assert statuses(record(project.pk, [make_event(**FULL)])) == ["created"]
    row = Event.objects.get(project=project)
    assert (row.model, row.attempt, row.latency_ms) == (FAILED, 1, 812)
    assert (row.input_tokens, row.output_mode) == (1204, "json")
    detail = EventPayload.objects.get(project=project)
    assert (detail.raw_output_preview, detail.temperature) == (FAILED, 0.2)
    assert detail.attributes.keys() == {FAILED}
    (repair,) = detail.repairs
    assert (repair["kind"], repair["line"], repair["column"]) == (FAILED, 2, 7)


def test_a_redactor_that_fails_leaves_out_long_numbers(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redactor, "_keeper", None)
    record(project.pk, [make_event(attributes={"customer": 12_345_678_901_234})])
    assert EventPayload.objects.get(project=project).attributes == {FAILED: None}


def test_a_rule_of_a_project_that_finds_numbers_leaves_columns_of_numbers(project: Project) -> None:
    forget_rules()
    RedactionRule.objects.create(
        project=project, name="numbers", kind="number", pattern="[0-9]{3,}"
    )
    forget_rules()
    changes = {**FULL, "raw_output_preview": "see 123"}
    assert statuses(record(project.pk, [make_event(**changes)])) == ["created"]
    row = Event.objects.get(project=project)
    assert (row.latency_ms, row.input_tokens) == (812, 1204)
    detail = EventPayload.objects.get(project=project)
    assert detail.raw_output_preview == "see [REDACTED:number]"
    assert detail.attributes["customer"] == "[REDACTED:number]"
    assert (detail.attributes["count"], detail.repairs[0]["line"]) == (3, 2)

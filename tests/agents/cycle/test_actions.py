"""Goals of mode actions, from the request to the undo."""

from typing import Any

import pytest

from agents.actions.models import Entry
from agents.cycle.running import NODES, CycleNode
from agents.goals.models import ActionBatch, Goal
from agents.goals.records import goal_record
from agents.goals.submission import enqueue_goal
from failsoft.actions.results import ALL_FAILED
from failsoft.retry.policy import OutputMode
from tests.agents.actions.test_applying import make_entry
from tests.agents.conftest import Api, Planner, Record, events_named, work_off
from tests.failsoft.actions.calls import call, complete, create, update

MILK = {"content": "milk", "category": "list"}
EXCEPTION_WORDS = ("Error", "Traceback", "Exception", "pydantic", "expected", "entries[")


def says(*calls: object, **reply: Any) -> dict[str, Any]:
    """A reply of tool calls."""
    return {"tool_calls": list(calls), "finish_reason": "tool_calls", **reply}


def run(planner: Planner, *replies: Any, **order: Any) -> Record:
    """Submit a goal of mode actions and work it off."""
    return planner.run(*replies, mode="actions", toolset="entries", **order)


def test_s4_41_the_appendix_trace_ends_with_both_actions_applied(planner: Planner) -> None:
    entry = make_entry(planner.project, "abc")
    record = run(
        planner,
        says(
            create({"content": "milk", "category": "grocery"}, identity="call_1"),
            complete("abc", "call_2"),
        ),
    )
    assert record["status"] == "completed"
    assert record["outcome"] == "ok_first"
    assert record["user_text"] == record["summary"] == "Created 1, completed 1"
    assert record["parse_failures"] == record["execution_failures"] == []
    made = Entry.objects.exclude(pk=entry.pk).get()
    assert (made.content, made.category) == ("milk", "note")
    entry.refresh_from_db()
    assert entry.status == "completed"


def test_s4_1_five_calls_one_malformed_four_are_applied(planner: Planner) -> None:
    good = [create({"content": str(number)}) for number in range(4)]
    record = run(planner, says(good[0], call("create_entries", "{"), *good[1:]))
    assert len(record["applied"]) == 4
    assert len(record["parse_failures"]) == 1
    assert record["user_text"] == "Created 4 (1 couldn't be processed)"
    assert record["status"] == "completed"
    assert planner.calls == 1


def test_s4_21_one_parse_and_one_execution_failure_are_told_as_two(planner: Planner) -> None:
    record = run(planner, says(create(MILK), update({"status": "frozen"}), complete("fff")))
    assert record["user_text"] == "Created 1 (2 couldn't be processed)"


def test_s4_19_the_two_layers_are_stored_apart(planner: Planner) -> None:
    record = run(
        planner, says(create(MILK), create({"content": 5}, MILK, MILK), complete("fff", "c"))
    )
    assert (record["parse_failed"], record["execution_failed"]) == (3, 1)
    (unparsed,), (unapplied,) = record["parse_failures"], record["execution_failures"]
    assert unparsed["path"] == "entries[0].content"
    assert unparsed["entries"] == 3
    assert unapplied["tool_call_id"] == "c"
    assert unapplied["message"] == "entry fff not found"


def test_s4_20_and_s4_26_and_s4_35_full_success_has_empty_failures(planner: Planner) -> None:
    record = run(planner, says(create(MILK, MILK)))
    assert record["user_text"] == "Created 2"
    assert record["parse_failures"] == []
    assert record["execution_failures"] == []


def test_the_summary_tells_what_was_done_and_not_what_the_model_claims(planner: Planner) -> None:
    reply = says(create(MILK), text="I created 20 entries and completed everything!")
    assert run(planner, reply)["user_text"] == "Created 1"


def test_every_leniency_is_on_the_event_of_the_good_attempt(planner: Planner) -> None:
    record = run(planner, says(create({"content": "a", "category": "grocery", "priority": 99})))
    (event,) = events_named(record, "succeeded")
    assert event["name"] == "graph.actions.succeeded"
    assert [(item["path"], item["kind"]) for item in event["coerced"]] == [
        ("/0/function/arguments/entries/0/category", "fallback"),
        ("/0/function/arguments/entries/0/priority", "clamped"),
    ]
    assert event["output_mode"] == "tools"


def test_repaired_arguments_are_on_the_event(planner: Planner) -> None:
    record = run(planner, says(call("create_entries", "{'entries': [{'content': 'a'}]}")))
    (event,) = events_named(record, "succeeded")
    assert {item["kind"] for item in event["repairs"]} == {"single_quotes"}


def test_the_toolset_is_offered_natively_and_what_exists_is_told(planner: Planner) -> None:
    make_entry(planner.project, "abcdef0123", content="bread", priority=2)
    run(planner, says(create(MILK)))
    (request,) = planner.script.requests
    assert request.output_mode is OutputMode.TOOLS
    assert [tool.name for tool in request.tools] == [
        "create_entries",
        "update_entries",
        "complete_entries",
        "archive_entries",
    ]
    assert "abcdef01 note P2: bread" in request.user


@pytest.mark.parametrize(
    ("reply", "error_type"),
    [
        (says(call("create_entries", "{")), "truncated"),
        (says(call("create_entries", "null")), "not_json"),
        (says(update({"status": "frozen"})), "schema_invalid"),
        (says(call("nothing", "{}")), "schema_invalid"),
        ({"text": "Sure, I will do that."}, "not_json"),
        ({"text": "I'm sorry, I can't help with that."}, "refusal"),
        ({"text": ""}, "empty_output"),
        ({"text": "", "finish_reason": "length"}, "truncated"),
        (says(None), "schema_invalid"),
    ],
    ids=repr,
)
def test_an_answer_without_a_usable_call_gets_feedback_and_another_attempt(
    planner: Planner, reply: dict[str, Any], error_type: str
) -> None:
    record = run(planner, reply, says(create(MILK)))
    assert record["status"] == "completed"
    assert record["outcome"] == "repaired"
    (event,) = events_named(record, "parse_invalid")
    assert event["name"] == "graph.actions.parse_invalid"
    assert event["parse_error_type"] == error_type
    assert planner.calls == 2
    asked = "Leave out what you decline" if error_type == "refusal" else "corrected calls of tools"
    assert asked in planner.prompts[1]


WRITTEN = (
    '{"tool_calls": [{"name": "create_entries", "arguments": '
    '{"entries": [{"content": "milk", "category": "list"}]}}]}'
)


@pytest.mark.parametrize(
    ("first", "supported", "modes"),
    [
        # Nothing is known of the model.
        ("text", [], ["tools", "tools"]),
        # The last attempt is constrained where the model has that.
        ("text", ["text", "schema", "tools"], ["tools", "schema"]),
        # A model that is known to have no native calls writes them.
        ("text", ["text", "schema"], ["schema", "schema"]),
        ("text", ["text"], ["text", "text"]),
        # An administrator may start at schema.
        ("schema", ["text", "schema", "tools"], ["schema", "schema"]),
    ],
    ids=repr,
)
def test_native_calls_are_asked_for_unless_the_model_is_known_to_have_none(
    planner: Planner, first: str, supported: list[str], modes: list[str]
) -> None:
    model = planner.language_model
    model.output_mode, model.last_output_mode = first, "schema"
    model.supported_output_modes = supported
    model.save()
    record = run(planner, {"text": "no"}, {"text": WRITTEN})
    assert [attempt["output_mode"] for attempt in record["attempts"]] == modes
    assert record["summary"] == "Created 1"
    for request in planner.script.requests:
        is_native = request.output_mode is OutputMode.TOOLS
        assert bool(request.tools) is is_native
        assert ("tool_calls" in request.user) is not is_native
        assert ("tool_calls" in request.json_schema.get("properties", {})) is not is_native


def test_the_feedback_names_place_and_reason(planner: Planner) -> None:
    run(planner, says(update({"status": "frozen"})), says(create(MILK)))
    assert (
        "/0/function/arguments/updates/0/fields/status: expected one of active"
        in planner.prompts[1]
    )


def test_s4_23_everything_fails_in_parsing_and_the_person_gets_a_statement(
    planner: Planner,
) -> None:
    bad = says(update({"status": "frozen"}), call("create_entries", ""))
    record = run(planner, bad, bad)
    assert record["status"] == "failed"
    assert record["outcome"] == "degraded"
    assert record["user_text"].startswith(ALL_FAILED)
    assert record["correlation_id"] in record["user_text"]
    assert "?" not in record["user_text"]
    assert record["applied"] == []
    assert [item["path"] for item in record["parse_failures"]] == [
        "updates[0].fields.status",
        "arguments",
    ]
    (event,) = events_named(record, "degraded")
    assert event["reason"] == "actions_parse_failed"
    assert record["execution_eval"]["reason"] == "actions_parse_failed"


def test_s4_23_everything_fails_in_execution_and_the_person_gets_a_statement(
    planner: Planner,
) -> None:
    record = run(planner, says(complete("fff")))
    assert record["status"] == "failed"
    assert record["user_text"].startswith(ALL_FAILED)
    assert "?" not in record["user_text"]
    assert len(record["execution_failures"]) == 1
    assert events_named(record, "degraded") == []
    assert planner.calls == 1


def test_s4_22_and_s4_25_and_s4_36_the_person_sees_a_count_and_no_error_text(
    planner: Planner,
) -> None:
    partly = says(create(MILK), call("create_entries", "{"), complete("fff"))
    nothing = says(call("create_entries", "{"))
    for record in (run(planner, partly), run(planner, nothing, nothing)):
        told = [record["user_text"], *record["help"]]
        assert not [w for w in EXCEPTION_WORDS if any(w in text for text in told)]


def test_s4_44_an_unknown_tool_is_a_failure_and_an_event_of_its_own(planner: Planner) -> None:
    record = run(planner, says(call("create_entrys", "{}"), create(MILK)))
    assert [item["code"] for item in record["parse_failures"]] == ["unknown_tool"]
    (event,) = events_named(record, "unknown_tool")
    assert event["tool"] == "create_entrys"
    assert event["attributes"]["nearest"] == "create_entries"
    assert len(record["applied"]) == 1


def test_s4_29_and_s4_36_failures_are_not_fed_into_another_turn(planner: Planner) -> None:
    run(planner, says(create(MILK), update({"status": "frozen"})))
    run(planner, says(create(MILK)))
    (request,) = planner.script.requests
    assert "frozen" not in request.user
    assert "failed" not in request.user


def test_no_stub_stands_in_for_actions(planner: Planner) -> None:
    reply = {"text": "no"}
    record = run(planner, reply, reply, retry={"use_stub_fallback": True})
    assert (record["status"], record["source"]) == ("failed", "planner")


def test_s4_2_what_no_column_can_keep_crashes_nothing(planner: Planner) -> None:
    mess = says(
        {"id": "\x00", "function": {"name": "\x00\ud800", "arguments": "{}"}},
        create({"content": 5, "\x00key\ud800": 1}),
        call(
            "create_entries",
            {"entries": [{"content": "a\x00b\ud800", "category": "x", "\x00k\ud800": 2}]},
        ),
        text="\x00",
    )
    record = run(planner, mess)
    assert record["status"] == "completed"
    assert len(record["parse_failures"]) == 2
    assert Entry.objects.get().content == "a�b�"


def test_a_goal_taken_up_again_after_a_crash_applies_its_actions_once(
    planner: Planner, monkeypatch: pytest.MonkeyPatch
) -> None:
    planner.will_say(says(create(MILK)))
    goal = planner.submit(mode="actions", toolset="entries")
    with monkeypatch.context() as broken:
        broken.setitem(NODES, CycleNode.RESPOND, _die)
        with pytest.raises(SystemExit):
            work_off()
    assert ActionBatch.objects.count() == 1
    Goal.objects.filter(pk=goal.pk).update(status="queued", lease_until=None)
    from_queue = planner.finish(_enqueue(goal))
    assert from_queue["status"] == "completed"
    assert from_queue["summary"] == "Created 1"
    assert Entry.objects.count() == 1
    assert planner.calls == 1


def _die(walk: object) -> None:
    raise SystemExit


def _enqueue(goal: Goal) -> Goal:
    enqueue_goal(goal)
    return goal


@pytest.mark.parametrize(
    ("order", "path"),
    [
        ({"mode": "actions"}, "/toolset"),
        ({"mode": "actions", "toolset": "nothing"}, "/toolset"),
        ({"mode": "plan", "toolset": "entries"}, "/toolset"),
        ({"mode": "actions", "toolset": "entries", "tools": ["echo"]}, "/tools"),
    ],
    ids=repr,
)
def test_a_goal_of_actions_names_its_toolset_and_no_other_goal_does(
    api: Api, planner: Planner, order: dict[str, Any], path: str
) -> None:
    answer = api.post("goals", {"goal": "Buy milk", **order})
    assert answer.status_code == 422
    assert [error["path"] for error in answer.json()["errors"]] == [path]


def test_over_rest_a_goal_is_submitted_read_and_undone(api: Api, planner: Planner) -> None:
    kept = make_entry(planner.project, "abc")
    planner.will_say(says(create(MILK), complete("abc"), complete("fff")))
    body = {"goal": "Buy milk", "mode": "actions", "toolset": "entries"}
    reference = api.post("goals", body).json()["correlation_id"]
    assert api.get(f"goals/{reference}").json()["parse_failures"] == []
    assert api.post(f"goals/{reference}/undo").status_code == 409
    work_off()
    record = api.get(f"goals/{reference}").json()
    assert [item["type"] for item in record["applied"]] == ["create", "complete"]
    assert record["applied"][1]["entry_id"] == kept.pk
    assert record["summary"] == "Created 1, completed 1 (1 couldn't be processed)"
    assert record["undone_at"] is None

    undone = api.post(f"goals/{reference}/undo")
    assert undone.status_code == 200
    assert undone.json()["undone_at"] is not None
    assert undone.json()["kept"] == []
    assert [entry.status for entry in Entry.objects.all()] == ["active"]
    again = api.post(f"goals/{reference}/undo")
    assert again.status_code == 409
    assert "undone before" in again.json()["detail"]


def test_another_project_s_goal_cannot_be_undone(api: Api) -> None:
    assert api.post("goals/unknown/undo").status_code == 404


def test_goals_of_other_modes_have_no_actions(planner: Planner) -> None:
    record = goal_record(planner.submit(mode="plan"))
    assert "applied" not in record

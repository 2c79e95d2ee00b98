"""Answers as models write them, from the goal to the next prompt: nothing is carried out wrongly.

Each answer that cannot be used is told with its cause: to the model, and on the goal's page.
"""

import json
from typing import Any

import pytest
from django.test import Client

from diagnostics.failures.models import FailureGroup
from diagnostics.store import aggregation
from tests.agents.conftest import Planner, Record, events_named
from tests.agents.conftest import planner as planner
from tests.agents.conftest import project as project
from tests.console import make_member

CALL: dict[str, Any] = {"name": "echo", "args": {"text": "hi"}}
ECHO: dict[str, Any] = {"step_id": "step_1", "tool": CALL}
PLAN = json.dumps({"steps": [ECHO]})


def step(number: int, tool: str | dict[str, Any] = "echo", **keys: Any) -> dict[str, Any]:
    return {"step_id": f"step_{number}", "tool": tool, **keys}


def plan(*steps: dict[str, Any], **keys: Any) -> str:
    return json.dumps({"steps": steps, **keys})


def outputs(record: Record) -> list[Any]:
    return [row.get("output") for row in record["results"][:-1]]


def page_of(planner: Planner, record: Record, client: Client) -> str:
    client.force_login(make_member(planner.project))
    answer = client.get(f"/runs/{record['correlation_id']}/")
    assert answer.status_code == 200
    return answer.content.decode()


# Arguments under another name are read, and order under another name is kept.


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer",
    [
        plan(step(1, tool={"name": "sleep", "parameters": {"seconds": 0.01}})),
        plan(step(1, tool={"name": "sleep", "Tool_Args": {"seconds": 0.01}})),
        plan(step(1, "sleep", arguments='{"seconds": 0.01}')),
        json.dumps({"result": {"plan": [step(1, "sleep", Inputs={"seconds": 0.01})]}}),
    ],
)
def test_arguments_under_another_name_reach_the_tool(planner: Planner, answer: str) -> None:
    record = planner.run(answer, mode="plan")

    assert (record["status"], record["outcome"]) == ("completed", "ok_first")
    assert outputs(record) == [{"slept_seconds": 0.01}]
    assert "near_name" in {item["kind"] for item in record["attempts"][0]["coerced"]}


def test_arguments_of_a_next_step_under_another_name_reach_the_tool(planner: Planner) -> None:
    asked = '{"kind": "call_tool", "tool": "echo", "parameters": {"text": "here"}}'
    record = planner.run(asked, '{"kind": "finish", "answer": "ok"}')

    assert record["status"] == "completed"
    assert record["runs"][0]["results"][0]["output"] == {"text": "here"}


@pytest.mark.parametrize("key", ["depends_on", "waitsFor", "Prerequisites", "run-after", "needs"])
def test_an_order_under_another_name_is_kept(planner: Planner, key: str) -> None:
    answer = plan(step(1, "fail"), step(2) | {key: ["step_1"]})
    record = planner.run(answer, mode="plan", max_iterations=1)

    first, second, meta = record["results"]
    assert (first["ok"], second["skipped"]) == (False, True)
    assert meta["task_status"] == "FAILED"


# What may carry meaning is refused with its name, before anything runs.


@pytest.mark.slow
@pytest.mark.parametrize(
    ("answer", "told", "mistake"),
    [
        (plan(step(1, tool={"name": "sleep", "pause": 7})),
         '/steps/0/tool/pause: expected only the keys args, name, got "pause"',
         "keys that the form does not have"),
        (plan(step(1), step(2, when_done="step_1")),
         '/steps/1/when_done: expected only the keys', "keys that the form does not have"),
        (plan(step(1), dry_run=True), '/dry_run: expected only the keys contract_version, steps',
         "keys that the form does not have"),
        (plan(step(1, params={"text": "a"}, args={"text": "b"})),
         '/steps/0/params: expected only the keys', "keys that the form does not have"),
        (plan(step(1, "sleep", args={"secs": 7})),
         '/steps/0/args/secs: expected only the keys seconds, got "secs"',
         "an argument that its tool does not have"),
        (plan(step(1, "http_get", args={})),
         "/steps/0/args/url: expected this key, which is required",
         "leaving out an argument that a tool requires"),
        (plan(step(1, "sleep", args={"seconds": "a while"})),
         "/steps/0/args/seconds: expected a valid number",
         "an argument of another type or value than its tool takes"),
        (plan(step(1, "slepe", args={"seconds": 1})),
         '/steps/0/tool: expected a known tool, got "slepe"; the nearest is "sleep"',
         "a tool that is not listed"),
    ],
)  # fmt: skip
def test_what_may_mean_something_is_refused_by_name_and_asked_for_again(
    planner: Planner, client: Client, answer: str, told: str, mistake: str
) -> None:
    record = planner.run(answer, PLAN, mode="plan")

    assert (record["status"], record["outcome"]) == ("completed", "repaired")
    assert outputs(record) == [{"text": "hi"}]
    first, second = record["attempts"]
    assert (first["state"], first["error_type"]) == ("invalid", "schema_invalid")
    assert told in second["feedback"]
    mistakes = second["feedback"].partition("Common mistakes to avoid:\n")[2].splitlines()
    assert mistakes == [f"- {mistake}", "Return only the corrected JSON object."]
    assert len(events_named(record, "parse_invalid")) == 1
    assert first["errors"][0]["path"] in page_of(planner, record, client)


def test_a_reference_is_no_argument_of_the_wrong_type(planner: Planner) -> None:
    answer = plan(
        step(1, args={"seconds": 0.01}),
        step(2, "sleep", args={"seconds": "$step_1.output.seconds"}),
    )
    record = planner.run(answer, mode="plan")

    assert record["outcome"] == "ok_first"
    assert outputs(record)[1] == {"slept_seconds": 0.01}


def test_a_reference_to_a_value_of_the_wrong_type_fails_its_step(planner: Planner) -> None:
    answer = plan(
        step(1, args={"n": "soon"}), step(2, "sleep", args={"seconds": "$step_1.output.n"})
    )
    record = planner.run(answer, mode="plan", max_iterations=1)

    assert planner.calls == 1
    assert record["results"][1]["reason"] == "invalid_arguments"


def test_a_submitted_plan_keeps_its_unknown_keys(planner: Planner) -> None:
    given = {"steps": [{**ECHO, "owner": "me", "tool": {**CALL, "cost": 1}}], "dry_run": 0}
    record = planner.finish(planner.submit(mode="plan", plan=given))

    assert (record["status"], planner.calls) == ("completed", 0)


def test_a_tool_that_the_goal_may_not_use_is_refused(planner: Planner) -> None:
    record = planner.run(plan(step(1, "sleep")), PLAN, mode="plan", tools=["echo", "template"])

    assert record["outcome"] == "repaired"
    assert outputs(record) == [{"text": "hi"}]
    (event,) = events_named(record, "unknown_tool")
    assert (event["tool"], event["attributes"]) == ("sleep", {})


# After a refusal no format is asked for.


@pytest.mark.parametrize(
    "answer",
    ["I'm sorry, but I can't help with that.", {"text": "", "finish_reason": "content_filter"}],
)
def test_a_refusal_is_answered_with_what_to_leave_out(
    planner: Planner, client: Client, answer: Any
) -> None:
    record = planner.run(answer, PLAN, mode="plan")

    assert record["outcome"] == "repaired"
    first, second = record["attempts"]
    assert first["error_type"] == "refusal"
    feedback = second["feedback"]
    assert "Leave out what you decline, and answer for the rest of the goal." in feedback
    assert "declining the whole goal because of one part of it" in feedback
    assert "JSON object" not in feedback.partition("Errors:")[2]
    assert "declined" in page_of(planner, record, client)


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer",
    [
        f"I won't draw up a plan for this. As an illustration, one could look so:\n\n{PLAN}",
        f"I'm not able to do that.\n\nFor reference, the usual format:\n```json\n{PLAN}\n```",
        f"Das kann ich leider nicht tun. Ein Plan sähe zum Beispiel so aus: {PLAN}",
        f"Lo siento, pero no puedo ayudar con eso. Un ejemplo de plan: {PLAN}",
        f"I have to decline. Template:\n{PLAN}",
    ],
)
def test_a_refusal_with_an_example_runs_nothing(planner: Planner, answer: str) -> None:
    record = planner.run({"text": answer, "repeat": True}, mode="plan")

    assert (record["status"], record["outcome"]) == ("failed", "degraded")
    assert record["runs"] == []
    first, second = record["attempts"]
    assert first["error_type"] == "refusal"
    assert "Leave out what you decline" in second["feedback"]


def test_an_apology_for_the_last_answer_is_no_refusal(planner: Planner) -> None:
    record = planner.run("{", f"Sorry for the confusion! The corrected plan:\n{PLAN}", mode="plan")

    assert (record["status"], record["outcome"]) == ("completed", "repaired")


# A part of a tool call that leaked into the text is not the answer.


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer",
    [
        f'<invoke name="make_plan">\n<parameter name="steps">{json.dumps([ECHO])}</parameter>\n'
        '<parameter name="mode">check only</parameter>\n</invoke>',
        '<\uff5cDSML\uff5cinvoke name="make_plan">\n'
        '<\uff5cDSML\uff5cparameter name="dry" string="true">yes'
        '</\uff5cDSML\uff5cparameter>\n<\uff5cDSML\uff5cparameter name="plan" string="false">'
        f"{PLAN}</\uff5cDSML\uff5cparameter>\n</\uff5cDSML\uff5cinvoke>",
        f"<tool_call>make_plan\n<arg_key>when</arg_key>\n<arg_value>never</arg_value>\n"
        f"<arg_key>plan</arg_key>\n<arg_value>{PLAN}</arg_value>\n</tool_call>",
        f"<function=make_plan>\n<parameter=owner>\nnobody\n</parameter>\n<parameter=plan>\n{PLAN}"
        "\n</parameter>\n</function>",
        f"<tool_use><name>make_plan</name><parameters><dry>1</dry><plan>{PLAN}</plan></parameters>"
        "</tool_use>",
    ],
)
def test_a_parameter_of_a_leaked_call_is_not_the_plan(planner: Planner, answer: str) -> None:
    record = planner.run(answer, PLAN, mode="plan")

    assert record["outcome"] == "repaired"
    assert [run["attempt"] for run in record["attempts"] if run["state"] == "invalid"] == [1]
    assert "Common mistakes to avoid:\n- " in record["attempts"][1]["feedback"]


# What looks like thinking inside of a string is the string.


@pytest.mark.slow
@pytest.mark.parametrize(
    "text",
    ["a <think> b", "x </think> y", "<think>all</think>", "[THINK] it [/THINK]", "end </thought>"],
)
def test_marks_of_thinking_inside_a_string_stay(planner: Planner, text: str) -> None:
    call = f"{{'name': 'echo', 'args': {{'text': '{text}', 'n': 3, 'after': 'c </think> d'}}}}"
    answer = f"{{'steps': [{{'step_id': 'step_1', 'tool': {call}}}]}}"
    record = planner.run(answer, mode="plan")

    assert outputs(record) == [{"text": text, "n": 3, "after": "c </think> d"}]


# Reasoning that took every token is named, and the next attempt may use more.


@pytest.mark.parametrize("reason", ["length", "stop"])
def test_tokens_spent_on_reasoning_are_named_to_model_and_administrator(
    planner: Planner, client: Client, reason: str
) -> None:
    spent = planner.language_model.max_output_tokens
    silent = {"text": "", "output_tokens": spent, "reasoning_tokens": spent}
    record = planner.run(silent | {"finish_reason": reason}, PLAN, mode="plan")

    first, second = record["attempts"]
    told = f"all {spent:,} output tokens were reasoning: raise the token limit or lower"
    assert first["errors"][0]["code"] == "only_reasoning"
    assert told in second["feedback"]
    assert "reason less, then answer" in second["feedback"]
    assert second["max_output_tokens"] == 2 * first["max_output_tokens"]
    assert told in page_of(planner, record, client)
    aggregation.fold()
    group = FailureGroup.objects.get(project=planner.project)
    page = client.get(f"/failures/{group.pk}/").content.decode()
    assert "Lower the reasoning effort, or raise the output token budget" in page
    assert told in page

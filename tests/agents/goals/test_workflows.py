"""Workflow files: what they say, and every refusal at its line."""

from pathlib import Path

import pytest
import yaml

from agents.goals.workflow_files import Located, WorkflowError, read_workflow

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"
MINIMAL = "goal: Say hello\n"
STEPS = "steps:\n  - step_id: step_1\n    tool: echo\n"


def refusals(text: str) -> list[Located]:
    with pytest.raises(WorkflowError) as caught:
        read_workflow(text)
    return caught.value.errors


def refusal(text: str) -> tuple[str, str, int, int]:
    (found,) = refusals(text)
    return found.path, found.code, found.line, found.column


@pytest.mark.parametrize("name", ["agent-pr-loop.yaml", "agent-pr-loop-legacy.yaml"])
def test_s3_43_s3_44_the_samples_are_workflows(name: str) -> None:
    workflow = read_workflow((EXAMPLES / name).read_text(encoding="utf-8"))

    assert workflow.name == name.removesuffix(".yaml")
    assert workflow.request.plan is not None
    assert workflow.request.completion_check is not None


def test_s3_43_the_sample_decides_by_a_structured_file() -> None:
    text = (EXAMPLES / "agent-pr-loop.yaml").read_text(encoding="utf-8")
    check = read_workflow(text).request.completion_check

    assert check is not None
    assert (check.decision_file or "").endswith(".json")
    review = (EXAMPLES / "checks/pr_review.py").read_text(encoding="utf-8")
    assert "check_id" in review


def test_a_goal_alone_is_a_workflow() -> None:
    workflow = read_workflow(MINIMAL)

    assert (workflow.name, workflow.request.goal) == ("workflow", "Say hello")
    assert (workflow.request.plan, workflow.request.max_iterations) == (None, 3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (MINIMAL + "max_iteration: 2\n", ("/max_iteration", "unknown_key", 2, 1)),
        (MINIMAL + "plan: {}\n", ("/plan", "unknown_key", 2, 1)),
        (MINIMAL + "goal: again\n", ("/goal", "duplicate_key", 2, 1)),
        (MINIMAL + "version: 2\n", ("/version", "unknown_version", 2, 1)),
        (MINIMAL + "name: []\n", ("/name", "name_type", 2, 1)),
        (MINIMAL + "steps: {}\n", ("/steps", "steps_type", 2, 1)),
        (MINIMAL + "budget: {calls: 0}\n", ("/budget/calls", "greater_than_equal", 2, 10)),
        (MINIMAL + "mode: soon\n", ("/mode", "literal_error", 2, 1)),
        # Steps are refused by the contract, at the step that is wrong.
        (
            MINIMAL + STEPS + "    dependencies: [step_9]\n",
            ("/steps/0/dependencies/0", "dependency_unknown", 5, 20),
        ),
        (MINIMAL + "steps: []\n", ("/steps", "steps_empty", 2, 1)),
        (
            MINIMAL + "completion_check:\n  kind: model\n  decision_fil: x\n",
            ("/completion_check/decision_fil", "extra_forbidden", 4, 3),
        ),
        (
            MINIMAL + "completion_check:\n  kind: command\n",
            ("/completion_check/command", "missing", 2, 1),
        ),
        # YAML that is more than plain values.
        ("goal: &a x\nname: *a\n", ("", "alias", 2, 7)),
        ("goal: !!python/object:os.system x\n", ("/goal", "not_plain", 1, 7)),
        ("goal: !!binary aGk=\n", ("/goal", "not_plain", 1, 7)),
        ("? [a]\n: b\n", ("", "key_type", 1, 3)),
        ("goal: [x\n", ("", "not_yaml", 2, 1)),
        ("goal: x\n---\ngoal: y\n", ("", "not_yaml", 2, 1)),
        ("", ("", "object_type", 1, 1)),
        ("- goal\n", ("", "object_type", 1, 1)),
        ("[" * 20_000, ("", "not_yaml", 1, 1)),
        ("x" * 300_000, ("", "too_large", 1, 1)),
    ],
)  # fmt: skip
def test_a_refusal_names_its_key_and_place(text: str, expected: tuple[str, str, int, int]) -> None:
    assert refusal(text) == expected


def test_every_refusal_is_told_at_once() -> None:
    found = refusals(MINIMAL + "a: 1\nb: 2\n")

    assert [item.path for item in found] == ["/a", "/b"]


def test_dates_and_words_stay_what_they_are() -> None:
    text = MINIMAL + STEPS + "    args:\n      day: 2026-01-02\n      on: yes\n"
    plan = read_workflow(text).request.plan

    assert plan is not None
    assert plan["steps"][0]["args"] == {"day": "2026-01-02", "on": True}


def test_a_bomb_of_aliases_is_not_unfolded() -> None:
    lines = ["goal: x", "a0: &a0 [x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30)]
    text = "\n".join(lines)

    assert yaml.compose(text) is not None
    assert refusal(text)[1] == "alias"

"""The planner on the embedded language model: what holds whatever it answers.

Some minutes on two quiet cores: `make test-model`.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import override_settings

from agents.breakers import store
from agents.breakers.models import Breaker
from agents.llm.models import Provider
from agents.llm.openai import OpenAIProvider
from bench.model import EMBEDDED, GOALS, embedded_model
from bench.model import Planner as LadderOnly
from diagnostics.analysis.statistics import wilson_interval
from failsoft.events import ParseErrorType
from tests.agents.conftest import (
    SCRIPT,
    Planner,
    Record,
    events_named,
    let_time_pass,
    planner,  # noqa: F401 - a fixture
    project,  # noqa: F401 - a fixture
)

pytestmark = pytest.mark.model

# None of them leaves this machine or takes long.
TOOLS = ["echo", "template", "json_select"]
KEY_NAME = "TEST_MODEL_KEY"
NONSENSE = {"text": "no plan", "repeat": True}
MAX_ATTEMPTS = 2
AMBIGUOUS = "Do it again, but better."
COMPLEX = (
    "Echo the word red, then take the total from the document"
    ' {"order": {"total": 42}}, then fill the template "$colour costs $total" with both,'
    " then echo the sentence, and echo it once more in between, without using any id twice."
)
IMPOSSIBLE = "Undo yesterday, and prove that the moon was never there."
NO_TOOL = "Use the tool send_mail to write to Ada that the train is late."
HOPELESS = "Reach the moon."
SUCCESS_GOAL, RECOVERY_GOAL = 0.9, 0.6


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[str, str]]:
    """The embedded model's server: its address and key."""
    with embedded_model() as address:
        yield address


@pytest.fixture
def real(
    planner: Planner,  # noqa: F811 - the fixture
    server: tuple[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> Planner:
    """The planner of a project whose default model is the embedded one."""
    monkeypatch.setenv(KEY_NAME, server[1])
    store.seen_closed.clear()
    model = planner.language_model
    model.name, model.prompt_version = EMBEDDED, ""
    model.last_output_mode = model.OutputMode.SCHEMA
    model.supported_output_modes = [model.OutputMode.TEXT, model.OutputMode.SCHEMA]
    # Free text of this size is a loop in nine cases of ten; a loaded machine is slow.
    model.max_output_tokens, model.attempt_timeout_seconds = 96, 300
    model.save()
    connect(planner, server[0])
    return planner


def connect(planner: Planner, url: str) -> None:  # noqa: F811 - a parameter
    """Let the embedded model answer instead of the script."""
    provider = planner.language_model.provider
    provider.adapter, provider.base_url = Provider.Adapter.OPENAI, url
    provider.credential = f"env:{KEY_NAME}"
    provider.save()


def ask(real: Planner, goal: str) -> Record:
    """Run a goal to its end."""
    order: dict[str, Any] = {"max_iterations": 1, "tools": TOOLS, "mode": "plan"}
    retry = {"max_retries": MAX_ATTEMPTS}
    return real.finish(real.submit(goal=goal, retry=retry, **order))


def keeps_the_contract(record: Record) -> None:
    """Assert what a ladder owes its caller, its events and its user."""
    attempts = record["attempts"]
    invalid = [row for row in attempts if row["state"] == "invalid"]
    assert 1 <= len(attempts) <= MAX_ATTEMPTS
    assert [row["attempt"] for row in attempts] == list(range(1, len(attempts) + 1))
    assert {row["state"] for row in attempts[:-1]} <= {"invalid", "call_failed"}
    assert all(is_located(row) for row in invalid)
    told = events_named(record, "parse_invalid")
    assert [event["attempt"] for event in told] == [row["attempt"] for row in invalid]
    assert all(event["validation_errors"] for event in told)
    assert {event["model"] for event in told} <= {EMBEDDED}
    ends_without_a_question(record)
    if attempts[-1]["state"] == "invalid":
        is_degraded(record)
    else:
        assert events_named(record, "degraded") == []


def is_located(row: Record) -> bool:
    """Whether every error of an invalid attempt says what is wrong, and where."""
    kind = ParseErrorType(row["error_type"])
    return bool(row["errors"]) and all(
        error["message"] and (kind is ParseErrorType.EMPTY_OUTPUT or error["path"] or error["line"])
        for error in row["errors"]
    )


def ends_without_a_question(record: Record) -> None:
    assert record["status"] in {"completed", "failed"}
    assert record["next_user_question"] is None
    assert "?" not in (record["user_text"] or "")


def is_degraded(record: Record) -> None:
    """Assert that a ladder without a valid plan ended as one that is exhausted."""
    (event,) = events_named(record, "degraded")
    assert event["attempts"] == len(record["attempts"]) == MAX_ATTEMPTS
    assert (record["status"], record["outcome"]) == ("failed", "degraded")
    assert record["error"]["code"] == "PlanGenerationFailed"
    assert record["error"]["last_error"]["errors"]
    assert record["results"] in (None, [])


def test_s1_49_and_s1_83_an_ambiguous_goal_ends_within_the_ladder(real: Planner) -> None:
    keeps_the_contract(ask(real, AMBIGUOUS))


def test_s1_83_a_complex_goal_ends_in_results_or_in_a_clear_error(real: Planner) -> None:
    record = ask(real, COMPLEX)

    keeps_the_contract(record)
    has_plan = record["attempts"][-1]["state"] == "valid"
    assert bool(record["results"]) is has_plan
    if has_plan:
        assert record["results"][-1]["step_id"] == "__meta__"


def test_s1_83_an_impossible_goal_never_turns_into_a_question(real: Planner) -> None:
    record = ask(real, IMPOSSIBLE)

    keeps_the_contract(record)
    assert "?" not in "".join(record["help"])


def test_s1_83_a_tool_that_is_missing_fails_its_step_and_is_not_planned_again(
    real: Planner,
) -> None:
    record = ask(real, NO_TOOL)

    keeps_the_contract(record)
    missing = {
        row["tool"]
        for row in record["results"] or []
        if (row.get("reason") or "").startswith("tool_not_found")
    }
    unknown = {event["tool"] for event in events_named(record, "unknown_tool")}
    assert missing <= unknown
    assert unknown.isdisjoint(TOOLS)
    if unknown:
        assert record["attempts"][-1]["state"] == "valid"


@override_settings(FAILSOFT_BREAKER_POLICY="deny")
def test_s1_49_and_s1_51_and_s1_83_exhausted_runs_open_the_breaker_and_one_ladder_probes(
    real: Planner, server: tuple[str, str]
) -> None:
    provider = real.language_model.provider
    provider.adapter, provider.base_url = Provider.Adapter.SCRIPTED, SCRIPT
    provider.save()
    real.will_say(NONSENSE)
    for _ in range(6):
        real.finish(real.submit(goal=HOPELESS, mode="plan"))
    breaker = Breaker.objects.get(kind="quality")
    assert breaker.state == "open"

    connect(real, server[0])
    waiting = real.submit(goal=HOPELESS, mode="plan")
    let_time_pass(3600)
    probe = real.finish(waiting)
    breaker.refresh_from_db()

    keeps_the_contract(probe)
    assert real.calls == 6 * MAX_ATTEMPTS, "the script was asked by the six runs alone"
    is_good = probe["attempts"][-1]["state"] == "valid"
    assert breaker.state == ("half_open" if is_good else "open")


def test_s1_50_and_s1_59_and_s1_62_the_goals_are_not_surely_missed(server: tuple[str, str]) -> None:
    """Five of the forty goals; `make bench-model` asks all, and prints the intervals."""
    goals = GOALS.read_text(encoding="utf-8").splitlines()[::8]
    ladder = LadderOnly(OpenAIProvider(*server), EMBEDDED, retries=MAX_ATTEMPTS)
    climbs = [ladder.climb(goal) for goal in goals]

    good = sum(climb.succeeded for climb in climbs)
    retried = [climb for climb in climbs if climb.failures]
    recovered = sum(climb.succeeded for climb in retried)
    assert len(climbs) == 5
    assert wilson_interval(good, len(climbs))[1] > SUCCESS_GOAL
    if not retried:
        pytest.skip("every first answer was good: no retry to measure")
    assert wilson_interval(recovered, len(retried))[1] > RECOVERY_GOAL
    assert good == len(climbs) - len(retried) + recovered

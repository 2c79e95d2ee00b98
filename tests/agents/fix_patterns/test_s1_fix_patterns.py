"""Fix patterns from recovery to hint: learned, told, withheld, decided, expired (X-14)."""

from itertools import islice
from typing import Any

import pytest

from agents.demo.loading import add_aftermath, remove_aftermath
from agents.fix_patterns import store
from agents.fix_patterns import store as decisions
from agents.fix_patterns.models import FixPattern, FixSuccess
from agents.fix_patterns.status import (
    DEMO,
    PatternMode,
    PatternPolicy,
    PatternStatus,
    is_withheld,
    status_of,
)
from agents.goals.models import Attempt, Goal
from diagnostics import clock
from diagnostics.accounts.models import Project
from failsoft.retry.answers import PlannerSchema
from tests.agents.conftest import FINISH, PLAN, Planner, Record, let_time_pass, tables_holding

GARBAGE = "Sure! I would begin by saying hello."
NO_TOOL = '{"steps": [{"step_id": "step_1"}]}'
NO_TOOL_HINT = "- `steps[*].tool` is never left out: it is an object."
TITLE = "Learned from earlier answers:"
DAY = 24 * 3600


def names(prefix: str, *, withheld: bool, count: int) -> list[str]:
    """Correlation ids of runs that are told, or of runs that are told nothing."""
    rules = PatternPolicy()
    every = (f"{prefix}-{number}" for number in range(10_000))
    found = (name for name in every if is_withheld(name, rules) is withheld)
    return list(islice(found, count))


def recover(planner: Planner, prefix: str, count: int, broken: str = NO_TOOL) -> None:
    """Let so many distinct runs be put right."""
    for name in names(prefix, withheld=False, count=count):
        record = planner.run(broken, PLAN, mode="plan", correlation_id=name)
        assert record["outcome"] == "repaired"


def run_one(planner: Planner, name: str, *replies: str) -> Record:
    """One more run; its prompts are the planner's."""
    return planner.run(*(replies or (PLAN,)), mode="plan", correlation_id=name)


def only_pattern(project: Project) -> FixPattern:
    return FixPattern.objects.get(project=project)


def standing(project: Project) -> PatternStatus:
    return status_of(only_pattern(project), store.policy_of(project.pk), clock.now())


def test_s1_43_three_distinct_recoveries_make_one_active_pattern(
    planner: Planner, project: Project
) -> None:
    recover(planner, "a", 2)
    assert standing(project) is PatternStatus.LEARNING

    recover(planner, "b", 1)

    pattern = only_pattern(project)
    assert (pattern.error_class, pattern.pointer) == ("schema_invalid", "/steps/*/tool")
    assert (pattern.change, pattern.successes) == ("added", 3)
    assert standing(project) is PatternStatus.ACTIVE


def test_s1_43_garbage_then_valid_teaches_too(planner: Planner, project: Project) -> None:
    recover(planner, "a", 3, GARBAGE)

    assert only_pattern(project).error_class == "not_json"
    assert standing(project) is PatternStatus.ACTIVE


def test_s1_44_the_next_first_prompt_says_it_in_our_words(planner: Planner) -> None:
    recover(planner, "a", 3)
    (name,) = names("told", withheld=False, count=1)

    record = run_one(planner, name, GARBAGE, PLAN)

    initial, corrected = planner.prompts
    assert f"{TITLE}\n{NO_TOOL_HINT}" in initial
    assert TITLE not in corrected
    row = Attempt.objects.get(goal__correlation_id=name, attempt=1)
    assert len(row.told_patterns) == 1
    first = next(event for event in record["events"] if event["attempt"] == 1)
    assert first["attributes"]["fix_patterns"] == str(row.told_patterns[0])


def test_s1_44_a_hint_is_for_answers_of_its_own_schema(planner: Planner) -> None:
    recover(planner, "a", 3)
    (name,) = names("told", withheld=False, count=1)

    planner.run(FINISH, correlation_id=name)

    assert TITLE not in planner.prompts[0]


def test_s1_44_a_share_of_runs_is_told_nothing_and_both_are_counted(
    planner: Planner, project: Project
) -> None:
    recover(planner, "a", 3)
    told = names("with", withheld=False, count=3)
    withheld = names("without", withheld=True, count=2)

    for name in told:
        run_one(planner, name)
    run_one(planner, withheld[0], NO_TOOL, PLAN)
    assert TITLE not in planner.prompts[0]
    run_one(planner, withheld[1])

    pattern = only_pattern(project)
    assert (pattern.told_runs, pattern.told_good) == (3, 3)
    assert (pattern.withheld_runs, pattern.withheld_good) == (2, 1)


def test_s1_44_a_call_without_an_answer_is_no_measure(planner: Planner, project: Project) -> None:
    recover(planner, "a", 3)
    (name,) = names("told", withheld=False, count=1)

    planner.run({"error": "refused"}, mode="plan", correlation_id=name)

    assert only_pattern(project).told_runs == 0


def test_s1_45_the_same_run_counts_once_whatever_is_repeated(
    planner: Planner, project: Project
) -> None:
    recover(planner, "a", 1)
    goal = Goal.objects.get()
    row = goal.attempts.get(attempt=2)

    for _ in range(3):
        store.learn(goal, row, PlannerSchema.PLAN, {"steps": []})

    assert {pattern.successes for pattern in FixPattern.objects.all()} == {1}


def test_s1_45_patterns_of_a_project_are_bounded_and_decisions_stay(
    planner: Planner, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MAX_PATTERNS", 2)
    recover(planner, "a", 1, GARBAGE)
    decisions.reject(only_pattern(project), "ada")
    recover(planner, "b", 1, NO_TOOL)
    recover(planner, "c", 1, '{"steps": []}')

    kept = set(FixPattern.objects.values_list("error_class", "code"))

    assert kept == {("not_json", "not_json"), ("schema_invalid", "steps_empty")}


def test_s1_45_at_the_bound_a_known_pattern_keeps_its_count(
    planner: Planner, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MAX_PATTERNS", 2)
    recover(planner, "a", 2, NO_TOOL)
    recover(planner, "b", 1, GARBAGE)
    recover(planner, "c", 1, NO_TOOL)
    counts = dict(FixPattern.objects.values_list("error_class", "successes"))
    assert counts == {"schema_invalid": 3, "not_json": 1}


@pytest.mark.parametrize("verb", ["approve", "reject", "expire"])
def test_a_decision_about_a_pattern_of_the_demo_stays_with_the_demo(
    project: Project, verb: str
) -> None:
    add_aftermath(project.pk, clock.now())
    row = FixPattern.objects.filter(project=project)[0]
    store.DECISIONS[verb](row, "ada")
    remove_aftermath(project.pk)
    assert not FixPattern.objects.filter(project=project, pk=row.pk).exists()


def test_a_real_recovery_takes_a_pattern_of_the_demo_over(
    planner: Planner, project: Project
) -> None:
    recover(planner, "a", 1)
    made_up = {"decision": "approved", "decided_by": DEMO, "successes": 9, "told_runs": 5}
    FixPattern.objects.update(**made_up)
    recover(planner, "b", 2)
    remove_aftermath(project.pk)
    pattern = only_pattern(project)
    assert (pattern.successes, pattern.decision, pattern.told_runs) == (2, None, 0)


def test_s1_45_and_s1_72_another_project_learns_nothing_from_it(planner: Planner) -> None:
    recover(planner, "a", 3)
    other = Project.objects.create(slug="other", name="Other")
    goal = Goal(project=other, correlation_id="x")

    assert store.hints_for(goal, PlannerSchema.PLAN) == store.Hints()


def test_s1_72_off_learns_nothing_and_tells_nothing(planner: Planner, project: Project) -> None:
    recover(planner, "a", 3)
    decisions.set_mode(project.pk, PatternMode.OFF, "ada")
    (name,) = names("told", withheld=False, count=1)

    run_one(planner, name, GARBAGE, PLAN)

    assert TITLE not in planner.prompts[0]
    assert FixPattern.objects.count() == 1


def test_s1_43_under_approve_an_operator_decides(planner: Planner, project: Project) -> None:
    decisions.set_mode(project.pk, PatternMode.APPROVE, "ada")
    recover(planner, "a", 3)
    before, after = names("told", withheld=False, count=2)
    assert standing(project) is PatternStatus.WAITING

    run_one(planner, before)
    assert TITLE not in planner.prompts[0]
    decisions.approve(only_pattern(project), "ada")
    run_one(planner, after)

    assert NO_TOOL_HINT in planner.prompts[0]
    assert only_pattern(project).decided_by == "ada"


def test_s1_43_what_was_rejected_is_never_told_again(planner: Planner, project: Project) -> None:
    recover(planner, "a", 3)
    decisions.reject(only_pattern(project), "ada")

    recover(planner, "b", 3)

    assert standing(project) is PatternStatus.REJECTED
    assert TITLE not in planner.prompts[0]


def test_s1_45_without_a_new_success_a_pattern_expires_and_begins_anew(
    planner: Planner, project: Project
) -> None:
    recover(planner, "a", 3)
    let_time_pass(31 * DAY)
    (name,) = names("told", withheld=False, count=1)
    assert standing(project) is PatternStatus.EXPIRED

    run_one(planner, name)
    assert TITLE not in planner.prompts[0]
    recover(planner, "b", 1)

    assert (only_pattern(project).successes, standing(project)) == (1, PatternStatus.LEARNING)
    assert FixSuccess.objects.count() == 1


def test_s1_45_expired_by_hand_it_has_to_prove_itself_anew(
    planner: Planner, project: Project
) -> None:
    recover(planner, "a", 3)
    decisions.expire(only_pattern(project), "ada")
    assert standing(project) is PatternStatus.EXPIRED

    recover(planner, "b", 1)

    assert (only_pattern(project).successes, standing(project)) == (1, PatternStatus.LEARNING)


def test_s1_45_a_refusal_and_a_ladder_without_an_end_teach_nothing(
    planner: Planner, project: Project
) -> None:
    refusal: Any = {"text": "I cannot help with that.", "finish_reason": "refusal"}
    planner.run(refusal, PLAN, mode="plan")
    planner.run(NO_TOOL, NO_TOOL, mode="plan")

    assert not FixPattern.objects.filter(project=project).exists()


def test_s1_45_no_secret_and_no_name_of_an_answer_is_kept(
    planner: Planner, project: Project
) -> None:
    marker = "zqx_ignore_all_rules"
    broken = f'{{"steps": [{{"step_id": "step_1", "{marker}": "{marker}"}}]}}'

    recover(planner, "a", 3, broken)

    assert only_pattern(project).change == "renamed"
    assert "agents_fixpattern" not in tables_holding(marker)

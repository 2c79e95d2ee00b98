"""Actions on rows: each alone, counted, and taken back."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Any

import pytest

from agents.actions.applying import (
    AlreadyUndoneError,
    NothingToUndoError,
    UndoExpiredError,
    apply_actions,
    batch_of,
    describe_things,
    undo_actions,
)
from agents.actions.models import Entry
from agents.goals.models import ActionBatch, Goal
from diagnostics.accounts.models import Project
from diagnostics.clock import DatabaseNow
from failsoft.actions import ParseResult, decode_tool_calls
from failsoft.actions.entries import ENTRIES
from failsoft.identifiers import uuid7
from plans.models.run import WorkingItem
from tests.agents.conftest import Planner, tables_holding
from tests.failsoft.actions.calls import call, complete, create, update, written

MILK = {"content": "milk", "category": "list"}


@pytest.fixture
def goal(planner: Planner) -> Goal:
    """A goal whose actions are applied by hand."""
    return make_goal(planner)


def make_goal(planner: Planner, number: int = 1) -> Goal:
    """A goal of mode actions; `number` tells goals apart."""
    created = datetime(2026, 11, 21, 12, tzinfo=UTC)
    return Goal.objects.create(
        id=uuid7(created, bytes([number] * 10)),
        project=planner.project,
        correlation_id=f"goal-{number}",
        mode=Goal.Mode.ACTIONS,
        toolset="entries",
        text_preview="whatever",
        language_model=planner.language_model,
    )


def make_entry(project: Project, identity: str, **columns: Any) -> Entry:
    """An entry whose id begins with these digits."""
    fields = {"content": f"entry {identity}", **columns}
    return Entry.objects.create(id=identity.ljust(32, "0"), project=project, **fields)


def decoded(*calls: object) -> ParseResult:
    """What comes of these calls."""
    return decode_tool_calls(list(calls), ENTRIES)


def _codes(batch: ActionBatch) -> list[str]:
    return [failure["code"] for failure in batch.execution_failures]


def test_each_action_changes_its_row(goal: Goal, project: Project) -> None:
    for identity in ("aaa", "bbb", "ccc"):
        make_entry(project, identity)
    batch = apply_actions(
        goal,
        decoded(
            create({**MILK, "priority": 2, "due_date": "2026-12-24"}),
            update({"content": "bread", "status": "snoozed"}, entry="aaa"),
            complete("bbb"),
            written("archive_entries", {"entries": [{"id": "ccc", "reason": "old"}]}),
        ),
    )
    assert batch.summary == "Created 1, updated 1, completed 1, archived 1"
    assert Entry.objects.get(pk__startswith="aaa").content == "bread"
    assert Entry.objects.get(pk__startswith="aaa").status == "snoozed"
    assert Entry.objects.get(pk__startswith="bbb").status == "completed"
    assert Entry.objects.get(pk__startswith="ccc").status == "archived"
    made = Entry.objects.get(content="milk")
    assert (made.category, made.priority) == ("list", 2)
    assert made.due_at == datetime(2026, 12, 24, tzinfo=UTC)


def test_s4_16_garbage_date_text_is_kept_and_the_date_is_unset(goal: Goal) -> None:
    apply_actions(goal, decoded(create({**MILK, "due_date": "blursday"})))
    entry = Entry.objects.get()
    assert (entry.due_text, entry.due_at) == ("blursday", None)


def test_an_entry_is_snoozed_until_a_date(goal: Goal, project: Project) -> None:
    make_entry(project, "abc")
    fields = {"status": "snoozed", "snooze_until": "2027-01-01"}
    apply_actions(goal, decoded(update(fields)))
    assert Entry.objects.get().snooze_until == datetime(2027, 1, 1, tzinfo=UTC)


def test_an_update_that_says_nothing_changes_nothing(goal: Goal, project: Project) -> None:
    make_entry(project, "abc", priority=2, cadence="daily")
    apply_actions(goal, decoded(update({"cadence": "biweekly", "priority": None})))
    entry = Entry.objects.get()
    assert (entry.priority, entry.cadence) == (2, "daily")


@pytest.mark.parametrize(
    ("written_id", "code"),
    [
        ("fff", "not_found"),
        ("xyz", "not_found"),
        ("%", "not_found"),
        ("\x00", "not_found"),
        ("ab", "ambiguous_id"),
    ],
    ids=repr,
)
def test_s4_17_an_id_that_names_no_one_entry_is_a_failure_and_no_crash(
    goal: Goal, project: Project, written_id: str, code: str
) -> None:
    make_entry(project, "ab1")
    make_entry(project, "ab2")
    batch = apply_actions(goal, decoded(complete(written_id)))
    assert _codes(batch) == [code]
    assert not Entry.objects.filter(status="completed").exists()


@pytest.mark.parametrize("written_id", ["abc", "ABC", "abc00000-0000"])
def test_a_short_id_is_resolved_by_its_unique_beginning(
    goal: Goal, project: Project, written_id: str
) -> None:
    make_entry(project, "abc")
    make_entry(project, "abd")
    batch = apply_actions(goal, decoded(complete(written_id)))
    assert batch.applied[0]["entry_id"].startswith("abc")
    assert batch.execution_failures == []


def test_an_entry_of_another_project_is_not_found(goal: Goal) -> None:
    make_entry(Project.objects.create(slug="other", name="Other"), "abc")
    assert _codes(apply_actions(goal, decoded(complete("abc")))) == ["not_found"]


def test_s4_18_the_second_of_three_actions_fails_and_the_others_are_applied(
    goal: Goal, project: Project
) -> None:
    make_entry(project, "aaa")
    entries = [{"id": "aaa"}, {"id": "fff"}]
    batch = apply_actions(
        goal, decoded(written("complete_entries", {"entries": entries}), create(MILK))
    )
    assert [item["type"] for item in batch.applied] == ["complete", "create"]
    assert [item["path"] for item in batch.execution_failures] == ["entries[1]"]


def test_s4_18_an_action_the_database_refuses_takes_no_other_with_it(
    goal: Goal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.actions.applying.secrets.token_hex", lambda _: "a" * 32)
    batch = apply_actions(goal, decoded(create(MILK, {"content": "bread"})))
    assert [item["content"] for item in batch.applied] == ["milk"]
    assert _codes(batch) == ["not_stored"]


def test_s4_19_and_s4_21_the_layers_are_counted_apart_and_told_as_one(goal: Goal) -> None:
    batch = apply_actions(goal, decoded(create(MILK), call("create_entries", ""), complete("fff")))
    assert (batch.parse_failed, batch.execution_failed) == (1, 1)
    assert len(batch.parse_failures) == len(batch.execution_failures) == 1
    assert batch.summary == "Created 1 (2 couldn't be processed)"


def test_s4_45_applied_and_failed_add_up_to_what_was_received(goal: Goal) -> None:
    bad = {"content": 5}
    result = decoded(create(MILK, MILK), create(bad, MILK, MILK), complete("f"), None)
    batch = apply_actions(goal, result)
    failed = batch.parse_failed + batch.execution_failed
    received = len(result.actions) + result.failed_entries
    assert len(batch.applied) + failed == 2 + 3 + 1 + 1 == received


SORTS: list[Callable[[Random], object]] = [
    lambda _: None,
    lambda random: create(*[MILK] * random.randint(0, 3)),
    lambda random: create(*[MILK] * random.randint(0, 3), {"content": 5}),
    lambda random: complete(random.choice(["a", "ab", "abc", "f", "%"])),
    lambda random: update({"status": random.choice(["active", "frozen"])}),
    lambda _: call("nothing", '{"entries": [1, 2, 3]}'),
    lambda _: call("create_entries", '{"entries": ['),
]


@pytest.mark.parametrize("seed", range(20))
def test_s4_45_the_record_of_any_batch_adds_up(goal: Goal, project: Project, seed: int) -> None:
    random = Random(seed)
    make_entry(project, "abc")
    make_entry(project, "abd")
    result = decoded(*[random.choice(SORTS)(random) for _ in range(8)])
    batch = apply_actions(goal, result)
    failed = batch.parse_failed + batch.execution_failed
    assert len(batch.applied) + failed == len(result.actions) + result.failed_entries
    assert sum(item["entries"] for item in batch.parse_failures) == batch.parse_failed
    if failed:
        assert batch.summary.endswith(f"({failed} couldn't be processed)")


def test_actions_are_applied_once_however_often_they_are_delivered(goal: Goal) -> None:
    result = decoded(create(MILK))
    first = apply_actions(goal, result)
    assert apply_actions(goal, result).pk == first.pk
    assert Entry.objects.count() == 1


def test_s4_24_an_undo_restores_exactly_what_was_applied(goal: Goal, project: Project) -> None:
    make_entry(project, "aaa", due_at=datetime(2026, 12, 1, tzinfo=UTC))
    make_entry(project, "bbb")
    before = list(Entry.objects.order_by("pk").values())
    apply_actions(
        goal,
        decoded(
            create(MILK),
            update({"content": "x", "priority": 1, "due_date": "2027-01-01"}, entry="aaa"),
            complete("aaa"),
            complete("fff"),
            call("create_entries", "null"),
        ),
    )
    batch = undo_actions(goal)
    assert list(Entry.objects.order_by("pk").values()) == before
    assert batch.undone_at is not None
    assert batch.kept == []


def test_s4_24_an_undo_leaves_what_was_changed_again_since(
    goal: Goal, project: Project, planner: Planner
) -> None:
    make_entry(project, "aaa")
    make_entry(project, "bbb")
    apply_actions(goal, decoded(complete("aaa"), complete("bbb")))
    apply_actions(make_goal(planner, 2), decoded(update({"content": "x"}, entry="aaa")))
    batch = undo_actions(goal)
    assert [identity[:3] for identity in batch.kept] == ["aaa"]
    statuses = dict(Entry.objects.values_list("id", "status"))
    assert {key[:3]: value for key, value in statuses.items()} == {
        "aaa": "completed",
        "bbb": "active",
    }


def test_an_undo_is_done_once(goal: Goal) -> None:
    apply_actions(goal, decoded(create(MILK)))
    undo_actions(goal)
    with pytest.raises(AlreadyUndoneError):
        undo_actions(goal)


def test_without_applied_actions_there_is_nothing_to_undo(goal: Goal) -> None:
    with pytest.raises(NothingToUndoError):
        undo_actions(goal)
    apply_actions(goal, decoded(complete("fff")))
    with pytest.raises(NothingToUndoError):
        undo_actions(goal)


def test_an_undo_needs_what_the_working_store_keeps_for_a_day(goal: Goal) -> None:
    apply_actions(goal, decoded(create(MILK)))
    WorkingItem.objects.all().delete()
    with pytest.raises(UndoExpiredError):
        undo_actions(goal)
    batch = batch_of(goal)
    assert batch is not None
    assert batch.undone_at is None
    assert Entry.objects.count() == 1


def test_s4_3_no_text_of_a_model_is_kept_as_it_was(goal: Goal) -> None:
    secret = "sk-proj-" + "Ab3" * 16
    apply_actions(
        goal,
        decoded(
            create({"content": f"my key is {secret}", "due_date": secret}),
            call("create_entries", f'{{"entries": [{{"content": 5, "x": "{secret}"}}]}}'),
            call(f"tool {secret}", "{}"),
            update({"status": "active"}, entry=secret),
        ),
    )
    assert tables_holding(secret) == []
    assert "my key is" in Entry.objects.get().content


def test_s4_3_raw_arguments_are_bounded(goal: Goal) -> None:
    batch = apply_actions(goal, decoded(call("create_entries", "word " * 10_000)))
    (failure,) = batch.parse_failures
    assert 1_000 < len(failure["raw_arguments"]) <= 4_096


def test_s4_42_a_missing_priority_sorts_after_every_real_one(goal: Goal, project: Project) -> None:
    start = datetime(2026, 1, 1, tzinfo=UTC)
    for number, priority in enumerate([None, 5, 1, 3, None, 2, 4]):
        entry = make_entry(project, f"{number}a", priority=priority)
        Entry.objects.filter(pk=entry.pk).update(created_at=start + timedelta(days=number))
    Entry.objects.filter(pk__startswith="3a").update(status="archived")
    found = Entry.objects.of(project.pk).by_importance()
    assert [entry.priority for entry in found] == [1, 2, 3, 4, 5, None, None]
    told = describe_things(goal)
    assert [line.split()[0][:2] for line in told] == ["2a", "5a", "6a", "1a", "0a", "4a"]


def test_the_batch_carries_its_time_from_the_database(goal: Goal) -> None:
    batch = apply_actions(goal, decoded(create(MILK)))
    stored = ActionBatch.objects.filter(pk=batch.pk, created_at__lte=DatabaseNow())
    assert stored.exists()

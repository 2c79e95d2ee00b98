"""The working store: encrypted, bound to its place, gone when its time is over."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.outbound.credentials import WorkingKeyError
from plans import tasks
from plans.checks.workspaces import workspace_of, workspace_path
from plans.models.run import WorkingItem
from plans.runs import working_store


@dataclass
class Goal:
    project_id: int
    pk: int


@dataclass
class Run:
    project_id: int
    pk: int


def test_a_value_comes_back_as_it_was(project: Project) -> None:
    value = {"text": "caf\u00e9 \0 \ud800", "n": [1, 2.5, None, True]}
    working_store.put(Goal(project.pk, 1), "text", value)
    assert working_store.get(Goal(project.pk, 1), "text") == value


def test_x17_the_database_holds_no_plain_text(project: Project) -> None:
    working_store.put(Goal(project.pk, 1), "text", "a very recognisable sentence")
    stored = bytes(WorkingItem.objects.get().ciphertext)
    assert b"recognisable" not in stored
    assert b"text" not in stored


def test_the_same_value_is_never_stored_twice_alike(project: Project) -> None:
    working_store.put(Goal(project.pk, 1), "a", "x")
    working_store.put(Goal(project.pk, 1), "b", "x")
    first, second = WorkingItem.objects.values_list("ciphertext", flat=True)
    assert bytes(first)[13:] != bytes(second)[13:]


def test_a_second_put_replaces_the_first(project: Project) -> None:
    working_store.put(Goal(project.pk, 1), "text", 1)
    working_store.put(Goal(project.pk, 1), "text", 2)
    assert working_store.get(Goal(project.pk, 1), "text") == 2


def test_a_missing_value_has_an_error_of_its_own(project: Project) -> None:
    with pytest.raises(working_store.WorkingItemMissingError):
        working_store.get(Goal(project.pk, 1), "text")


def test_a_value_moved_to_another_name_cannot_be_read(project: Project) -> None:
    working_store.put(Goal(project.pk, 1), "text", "x")
    WorkingItem.objects.update(owner="goal:2")
    with pytest.raises(WorkingKeyError):
        working_store.get(Goal(project.pk, 2), "text")


@pytest.mark.parametrize("key", ["", "not base64!", "AAAA", "A" * 43 + "="])
def test_a_wrong_key_is_an_error_not_a_wrong_value(
    project: Project, settings: Any, key: str
) -> None:
    working_store.put(Goal(project.pk, 1), "text", "x")
    settings.FAILSOFT_WORKING_KEY = key
    with pytest.raises(WorkingKeyError):
        working_store.get(Goal(project.pk, 1), "text")


def test_values_are_kept_until_their_owner_ends_and_a_while_longer(
    project: Project, settings: Any
) -> None:
    working_store.put(Goal(project.pk, 1), "text", "x")
    working_store.put(Goal(project.pk, 2), "text", "x")
    assert working_store.purge_due() == 0
    working_store.expire(Goal(project.pk, 1))
    assert working_store.purge_due() == 0
    settings.FAILSOFT_WORKING_KEEP_HOURS = 0
    working_store.expire(Goal(project.pk, 1))
    tasks.purge_working_store()
    assert WorkingItem.objects.get().owner == "goal:2"


def test_a_goals_own_workspace_goes_with_its_values(
    project: Project, settings: Any, tmp_path: Path
) -> None:
    settings.FAILSOFT_WORKSPACE_DIR = tmp_path
    settings.FAILSOFT_WORKING_KEEP_HOURS = 0
    folders = [workspace_path(workspace_of(project.pk, str(key))) for key in (1, 2)]
    for key in (1, 2):
        working_store.put(Goal(project.pk, key), "text", "x")
    working_store.expire(Goal(project.pk, 1))
    tasks.purge_working_store()
    assert [folder.exists() for folder in folders] == [False, True]


def test_values_whose_time_is_over_go_at_once_however_many(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(working_store, "_PURGE_BATCH", 2)
    past = clock.now() - timedelta(seconds=1)
    for number in range(5):
        working_store.put(Goal(project.pk, 1), f"text {number}", "x")
    WorkingItem.objects.update(expires_at=past)
    assert working_store.purge_due() == 5
    assert not WorkingItem.objects.exists()


def test_all_values_of_a_prefix_are_read_at_once(project: Project) -> None:
    for name in ("output:0", "output:2", "payload"):
        working_store.put(Run(project.pk, 1), name, name)
    values = working_store.get_all(Run(project.pk, 1), "output:")
    assert values == {"output:0": "output:0", "output:2": "output:2"}

"""Failure groups: found, counted, resolved, seen again; lists, samples, history."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from diagnostics import clock
from diagnostics.accounts.audit_log import details_of
from diagnostics.accounts.models import AuditEntry, Project
from diagnostics.failures import states as groups
from diagnostics.failures.counts import GroupQuestion, Sort, newest_of, read_question, states_of
from diagnostics.failures.groups import GroupRow, group_row, groups_of, newest_groups, samples_of
from diagnostics.failures.models import FailureGroup, GroupChange
from diagnostics.rest.cursors import BadCursorError
from diagnostics.selection.query_language import Term
from diagnostics.selection.selection import read_selection
from diagnostics.store import aggregation
from diagnostics.store.fingerprints import Regrouping
from tests.console import Role, make_member, post_and_fold
from tests.diagnostics.builders import degraded, succeeded, wire_event

pytestmark = pytest.mark.django_db
KINDS = ("not_json", "truncated", "refusal", "empty_output", "multiple_objects")


@pytest.fixture
def now() -> datetime:
    return clock.now()


def failed(at: datetime, kind: str = "not_json", **changes: Any) -> dict[str, Any]:
    return wire_event(occurred_at=at.isoformat(), parse_error_type=kind, **changes)


def lately(now: datetime, **more: Any) -> GroupQuestion:
    return GroupQuestion(now - timedelta(hours=24), now + timedelta(minutes=1), **more)


def listed(project: Project, asked: GroupQuestion) -> list[GroupRow]:
    return groups_of(project.pk, asked, 50)[0]


def the_group(project: Project) -> FailureGroup:
    return FailureGroup.objects.get(project=project)


def history(group: FailureGroup) -> list[str]:
    return list(group.changes.order_by("id").values_list("kind", flat=True))


def test_a_group_tells_when_it_was_first_and_last_seen(project: Project, now: datetime) -> None:
    early, late = now - timedelta(days=3), now - timedelta(minutes=2)
    post_and_fold(project, failed(late))
    post_and_fold(project, failed(early), failed(early + timedelta(hours=1)))
    group = the_group(project)
    assert (group.first_seen, group.last_seen, group.seen) == (early, late, 3)
    assert group.last_event_id is not None
    assert (group.node, group.error_type) == ("next_step", "not_json")
    assert history(group) == ["found"]


def test_what_is_new_grows_old_after_a_day(project: Project, now: datetime) -> None:
    post_and_fold(project, failed(now), failed(now - timedelta(days=2), "refusal"))
    states = dict(FailureGroup.objects.values_list("error_type", "state"))
    assert states == {"not_json": "new", "refusal": "ongoing"}


def test_a_resolved_group_regresses_when_it_is_seen_again(project: Project, now: datetime) -> None:
    post_and_fold(project, failed(now - timedelta(minutes=5)))
    group = the_group(project)
    user = make_member(project, Role.OPERATOR)
    assert groups.resolve(project.pk, [group.pk], user) == 1
    assert groups.resolve(project.pk, [group.pk], user) == 0
    # What happened before it was resolved and arrives late is no regression.
    post_and_fold(project, failed(now - timedelta(minutes=4)))
    assert the_group(project).state == "resolved"
    post_and_fold(project, failed(clock.now()))
    assert the_group(project).state == "regressed"
    assert history(group) == ["found", "resolved", "regressed"]
    assert groups.reopen(project.pk, [group.pk], user) == 1
    assert the_group(project).state == "ongoing"


def test_old_releases_may_run_on_after_a_repair(project: Project, now: datetime) -> None:
    post_and_fold(project, failed(now - timedelta(minutes=5), release="r1"))
    group = the_group(project)
    groups.resolve(project.pk, [group.pk], None, fixed_in="r2")
    post_and_fold(project, failed(clock.now(), release="r1"))
    assert the_group(project).state == "resolved"
    post_and_fold(project, failed(clock.now(), release="r2"))
    assert the_group(project).state == "regressed"


def test_a_mute_ends_with_its_count(project: Project, now: datetime) -> None:
    post_and_fold(project, failed(now))
    group = the_group(project)
    assert groups.mute(project.pk, [group.pk], None, more=2) == 1
    post_and_fold(project, failed(now))
    assert the_group(project).state == "muted"
    post_and_fold(project, failed(now))
    assert the_group(project).state == "ongoing"
    assert history(group) == ["found", "muted", "unmuted"]


def test_a_mute_ends_with_its_time_though_nothing_is_seen(project: Project, now: datetime) -> None:
    post_and_fold(project, failed(now))
    group = the_group(project)
    groups.mute(project.pk, [group.pk], None, until=now - timedelta(seconds=1))
    aggregation.fold()
    assert the_group(project).state == "ongoing"
    groups.mute(project.pk, [group.pk], None)
    aggregation.fold()
    assert the_group(project).state == "muted"


def test_who_changed_a_group_stands_in_the_audit_log(project: Project, now: datetime) -> None:
    post_and_fold(project, failed(now))
    group = the_group(project)
    user = make_member(project, Role.OPERATOR)
    groups.resolve(project.pk, [group.pk], user, fixed_in="r2")
    groups.resolve(project.pk, [group.pk], user)
    groups.reopen(project.pk, [group.pk], user)
    groups.mute(project.pk, [group.pk], user)
    groups.comment(project.pk, [group.pk], user, "looked at")
    entries = AuditEntry.objects.filter(chain=project.pk).order_by("number")
    assert [(one.action, one.actor_id) for one in entries] == [
        ("group.resolved", user.pk),
        ("group.reopened", user.pk),
        ("group.muted", user.pk),
        ("group.comment", user.pk),
    ]
    assert details_of(entries[0]) == {"groups": [group.pk], "text": "r2"}


def test_comments_are_redacted_and_kept_in_order(project: Project, now: datetime) -> None:
    post_and_fold(project, failed(now))
    group = the_group(project)
    user = make_member(project, Role.OPERATOR)
    secret = "password=" + "hunter" + "2hunter2"
    assert groups.comment(project.pk, [group.pk], user, f"see {secret}") == 1
    assert groups.comment(project.pk, [group.pk], user, "  ") == 0
    line = GroupChange.objects.get(kind="comment")
    assert "2hunter2" not in line.text
    assert line.by == user


def test_another_projects_groups_are_not_touched(project: Project, now: datetime) -> None:
    other = Project.objects.create(slug="o", name="O")
    post_and_fold(project, failed(now))
    ids = [the_group(project).pk]
    assert groups.resolve(other.pk, ids, None) == 0
    assert groups.mute(other.pk, ids, None) == 0
    assert groups.comment(other.pk, ids, None, "x") == 0
    assert group_row(other.pk, ids[0], lately(now)) is None


def test_a_list_tells_models_trend_and_runs_hit(project: Project, now: datetime) -> None:
    at = now - timedelta(minutes=30)
    post_and_fold(
        project,
        *[failed(at, model="a", correlation_id=f"r{n}") for n in range(3)],
        failed(at, model="b", correlation_id="r0"),
        succeeded(occurred_at=now.isoformat(), attempt=2, correlation_id="r0"),
    )
    (row,) = listed(project, lately(now))
    assert row.seen == 4
    assert row.models == {("fake", "a"): 3, ("fake", "b"): 1}
    assert sum(row.trend) == sum(row.trend[-2:]) == 4
    assert (row.runs, row.repaired) == (3, 1)
    assert row.repaired_share == pytest.approx(1 / 3)


def test_a_list_is_narrowed_by_terms_states_and_kind(project: Project, now: datetime) -> None:
    post_and_fold(
        project,
        failed(now, "not_json", model="claude-haiku", prompt_version="v1"),
        failed(now, "refusal", model="gpt", prompt_version=None),
        failed(now - timedelta(days=3), "truncated"),
    )

    def types(**more: Any) -> set[str]:
        rows = listed(project, lately(now, **more))
        return {row.group.error_type for row in rows}

    assert types() == {"not_json", "refusal"}
    assert types(terms=[Term("model", "haiku", is_exact=False)]) == {"not_json"}
    assert types(terms=[Term("prompt_version", None)]) == {"refusal"}
    assert types(terms=[Term("model", "gpt", is_negated=True)]) == {"not_json"}
    assert types(kinds=[Term("kind", "refusal")]) == {"refusal"}
    assert types(kinds=[Term("kind", "refusal", is_negated=True)]) == {"not_json"}
    assert types(kinds=[Term("kind", "parse_invalid")]) == {"not_json", "refusal"}
    assert types(states=["resolved"]) == set()


def test_pages_of_groups_go_on_where_the_last_one_stopped(project: Project, now: datetime) -> None:
    times = [now - timedelta(minutes=n // 2) for n in range(len(KINDS))]
    post_and_fold(project, *[failed(at, kind) for at, kind in zip(times, KINDS, strict=True)])
    seen, cursor = [], None
    for _ in range(3):
        rows, cursor = groups_of(project.pk, lately(now), 2, cursor)
        seen += [row.group.error_type for row in rows]
    assert cursor is None
    assert sorted(seen) == sorted(KINDS)
    with pytest.raises(BadCursorError):
        groups_of(project.pk, lately(now), 2, "x")


def test_a_group_can_be_shown_where_it_was_not_seen(project: Project, now: datetime) -> None:
    post_and_fold(project, failed(now - timedelta(days=5)))
    row = group_row(project.pk, the_group(project).pk, lately(now))
    assert row is not None
    assert (row.seen, row.models, row.runs) == (0, {}, 0)
    assert row.repaired_share is None


def test_samples_come_latest_first_page_by_page(project: Project, now: datetime) -> None:
    times = [now - timedelta(seconds=n // 2) for n in range(5)]
    post_and_fold(project, *[failed(at) for at in times], failed(now, "refusal"))
    group = FailureGroup.objects.get(error_type="not_json")
    span = (now - timedelta(hours=1), now + timedelta(minutes=1))
    first, cursor = samples_of(group, *span, 3)
    second, end = samples_of(group, *span, 3, cursor)
    assert end is None
    found = [event.occurred_at for event, _ in [*first, *second]]
    assert found == sorted(times, reverse=True)
    assert all(payload.raw_output_preview == "not json" for _, payload in first)


def test_a_preview_tells_what_another_grouping_would_merge(project: Project, now: datetime) -> None:
    def at(path: str) -> dict[str, Any]:
        faults = [{"path": path, "code": "missing", "message": "m"}]
        return failed(now, "schema_invalid", validation_errors=faults)

    post_and_fold(project, at("/a/x"), at("/a/y"), at("/b"))
    since = now - timedelta(hours=1)
    found = groups.preview_regrouping(project.pk, Regrouping(pointer_depth=1), since)
    assert [len(group) for group in found.merged.values()] == [2]
    assert found.kept == 1
    same = groups.preview_regrouping(project.pk, Regrouping(), since)
    assert (same.merged, same.split, same.kept) == ({}, {}, 3)


def test_what_is_new_and_what_came_back_is_told_first(project: Project, now: datetime) -> None:
    post_and_fold(project, failed(now - timedelta(days=5), "truncated", model="a"))
    old = the_group(project)
    post_and_fold(project, failed(now - timedelta(minutes=9), "refusal", model="b"))
    since, until = now - timedelta(hours=24), now + timedelta(minutes=5)
    found = newest_groups(project.pk, since, until)
    assert [(one.group.error_type, one.is_regressed) for one in found] == [("refusal", False)]
    groups.resolve(project.pk, [old.pk], None)
    post_and_fold(project, failed(clock.now(), "truncated", model="a"))
    found = newest_groups(project.pk, since, until)
    first, second = found
    assert (first.group, first.is_regressed, first.seen) == (old, True, 1)
    assert not second.is_regressed
    only = newest_groups(project.pk, since, until, terms=[Term("model", "b")])
    assert [one.group.error_type for one in only] == ["refusal"]
    muted = FailureGroup.objects.get(error_type="refusal")
    groups.mute(project.pk, [muted.pk], None)
    assert [one.group.pk for one in newest_groups(project.pk, since, until)] == [old.pk]


def test_what_exceeds_its_baseline_comes_before_what_is_always_there(
    project: Project, now: datetime
) -> None:
    for day in range(1, 7):
        post_and_fold(
            project, *[failed(now - timedelta(days=day, hours=1), "truncated") for _ in range(9)]
        )
    post_and_fold(project, *[failed(now, "truncated") for _ in range(8)])
    post_and_fold(project, *[failed(now, "refusal") for _ in range(3)])
    rows, _ = groups_of(project.pk, lately(now), 9, None, Sort.RISING)
    assert [(row.group.error_type, row.seen) for row in rows] == [("refusal", 3), ("truncated", 8)]
    assert rows[0].risen == 3
    assert rows[1].risen <= 1


def test_groups_are_listed_by_count_and_by_how_they_rise(project: Project, now: datetime) -> None:
    early, late = now - timedelta(hours=20), now - timedelta(hours=1)
    post_and_fold(project, *[failed(early, "truncated") for _ in range(5)])
    post_and_fold(project, *[failed(late, "refusal") for _ in range(3)])
    post_and_fold(project, failed(now, "not_json"))
    asked = lately(now)

    def paged(order: Sort) -> list[str]:
        found, cursor = list[str](), None
        while True:
            rows, cursor = groups_of(project.pk, asked, 1, cursor, order)
            found += [row.group.error_type for row in rows]
            if cursor is None:
                return found

    assert paged(Sort.LATEST) == ["not_json", "refusal", "truncated"]
    assert paged(Sort.MOST) == ["truncated", "refusal", "not_json"]
    assert paged(Sort.RISING) == ["truncated", "refusal", "not_json"]
    for order in Sort:
        with pytest.raises(BadCursorError):
            groups_of(project.pk, asked, 1, "x", order)
    assert states_of(project.pk, asked) == {"new": 3}


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ({"attempt": "2"}, {"truncated": 1}),
        ({"q": "attempt:1"}, {"not_json": 1}),
        ({"q": "needle"}, {"not_json": 1}),
        ({"q": "-needle"}, {"truncated": 1}),
        ({"corr": "x", "q": "corr:lost"}, {"truncated": 1}),
        ({"outcome": "degraded"}, {"truncated": 1}),
        ({"q": "-outcome:degraded"}, {"not_json": 1}),
        ({"outcome": "repaired"}, {}),
        ({"q": "attempt:2", "model": "other"}, {}),
        ({"name": "nonsense"}, {}),
        ({"q": "attempt:2", "kind": "truncated"}, {"truncated": 1}),
    ],
    ids=lambda value: str(value),
)
def test_what_no_rollup_knows_is_counted_event_by_event(
    project: Project, now: datetime, asked: dict[str, str], found: dict[str, int]
) -> None:
    at = now - timedelta(minutes=5)
    post_and_fold(
        project,
        failed(at, "not_json", raw_output_preview="a needle here"),
        failed(at, "truncated", attempt=2, correlation_id="lost-1"),
        degraded(occurred_at=now.isoformat(), correlation_id="lost-1"),
    )
    selection = read_selection({"range": "30d", **asked})
    question, notice = read_question(selection, clock.now())
    assert question.events is not None
    # An index finds the others in every day there is.
    assert (notice is None) == (not {"corr", "name"}.isdisjoint(asked))
    rows, _ = groups_of(project.pk, question, 10)
    assert {row.group.error_type: row.seen for row in rows} == found
    assert all(sum(row.trend) == row.seen for row in rows)


def test_a_word_of_many_failures_is_counted_in_the_newest(project: Project, now: datetime) -> None:
    times = [now - timedelta(minutes=5)] * 3 + [now - timedelta(days=2)]
    post_and_fold(project, *(failed(at, "not_json", raw_output_preview="a needle") for at in times))
    question, _ = read_question(read_selection({"range": "7d", "q": "needle"}), now)
    for most, seen in ((3, 3), (5, 4)):
        part = newest_of(project.pk, question, most)
        [row] = groups_of(project.pk, part, 10)[0]
        assert (row.seen, part.since > question.since) == (seen, seen == 3)

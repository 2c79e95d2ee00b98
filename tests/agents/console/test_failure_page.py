"""The page of one kind of failure: what, where, since when, how bad, what to change."""

import re
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from agents.fix_patterns.models import FixPattern
from diagnostics.accounts.models import Project
from diagnostics.failures import states as groups
from diagnostics.failures.models import FailureGroup
from tests.agents.console.conftest import Read
from tests.console import Role, make_member, post_and_fold
from tests.diagnostics.builders import degraded, succeeded, wire_event

pytestmark = pytest.mark.django_db
TEXT = '{"steps": [\n  {"step_id": "step_1", "tool": "orders.g'
PERCENT = "\N{NARROW NO-BREAK SPACE}%"


def truncated(at: datetime, **changes: Any) -> dict[str, Any]:
    error = {"path": "", "message": "expected the end", "line": 2, "column": 30}
    return wire_event(
        **{
            "name": "graph.plan.parse_invalid",
            "occurred_at": at.isoformat(),
            "schema": "PlanPayload",
            "parse_error_type": "truncated",
            "raw_output_preview": TEXT,
            "validation_errors": [error],
            **changes,
        }
    )


def good(at: datetime, number: int, **changes: Any) -> dict[str, Any]:
    return succeeded(
        name="graph.plan.succeeded",
        occurred_at=at.isoformat(),
        correlation_id=f"good-{number}",
        **changes,
    )


@pytest.fixture
def group(project: Project, at: datetime) -> FailureGroup:
    """Haiku fails in 9 of 10 calls, gpt in 1 of 30."""
    failures = [
        truncated(
            at - timedelta(seconds=number),
            model="haiku",
            correlation_id=f"bad-{number}",
            output_tokens=512,
            max_output_tokens=512,
        )
        for number in range(9)
    ]
    fine = [good(at, k, model="gpt") for k in range(29)]
    post_and_fold(
        project,
        *failures,
        *fine,
        good(at, 99, model="haiku"),
        truncated(at, model="gpt", correlation_id="bad-9"),
        good(at + timedelta(seconds=9), 9, model="gpt") | {"correlation_id": "bad-9"},
    )
    return FailureGroup.objects.get(project=project)


def test_one_sentence_says_how_bad_and_where(group: FailureGroup, read: Read) -> None:
    html = read(f"/failures/{group.pk}/")
    assert "10 failures in 24 h" in html
    assert "of 41 calls" in html
    assert f"fake/haiku has 90{PERCENT} of them and 24{PERCENT} of the calls" in html
    assert "1 of 10 sampled runs recovered" in html


def test_places_stand_beside_their_share_of_the_calls(group: FailureGroup, read: Read) -> None:
    html = read(f"/failures/{group.pk}/")
    lifts = re.findall(r"([\d.]+)\u00d7", html)
    assert "3.7" in lifts
    where = html.partition('id="where-heading"')[2]
    assert where.index("fake/haiku") < where.index("fake/gpt")


def test_the_sample_has_its_caret_and_can_be_turned(group: FailureGroup, read: Read) -> None:
    html = read(f"/failures/{group.pk}/")
    assert "line 2, column 30" in html
    assert '<span class="ln caret"' in html
    assert "sample 1 of 10" in html
    older = re.search(r'href="\?sample=([0-9a-f-]+)#what-heading" rel="next"', html)
    assert older is not None
    assert "sample 2 of 10" in read(f"/failures/{group.pk}/", sample=older[1])
    assert "sample 1 of 10" in read(f"/failures/{group.pk}/", sample="nonsense")


def test_advice_rests_on_the_samples(group: FailureGroup, read: Read) -> None:
    html = read(f"/failures/{group.pk}/")
    assert "512 tokens (median); the budget is 512" in html


def test_numbers_obey_the_filter(group: FailureGroup, read: Read) -> None:
    html = read(f"/failures/{group.pk}/", model="gpt")
    assert "1 failure in 24 h" in html
    assert "1 of 1 sampled run recovered" in html
    assert "sample 1 of 1<" in html
    html = read(f"/failures/{group.pk}/", q="attempt:1")
    assert "10 failures in 24 h" in html
    assert "1 of 10 sampled runs recovered" in html
    assert "calls are not counted" in html
    assert "Not seen in 1 h" in read(f"/failures/{group.pk}/", range="1h", model="x")


def test_fix_patterns_of_the_same_place_are_decided_here(
    project: Project, at: datetime, read: Read, client: Client
) -> None:
    error = {"path": "/steps/3/tool", "code": "missing", "message": "required"}
    post_and_fold(
        project, truncated(at, parse_error_type="schema_invalid", validation_errors=[error])
    )
    group = FailureGroup.objects.get(project=project)
    fields = {
        "project": project,
        "schema": "PlanPayload",
        "error_class": "schema_invalid",
        "code": "missing",
        "change": "added",
        "before": "nothing",
        "after": "object",
        "last_success_at": at,
    }
    mine = FixPattern.objects.create(pointer="/steps/*/tool", successes=3, **fields)
    FixPattern.objects.create(pointer="/steps/*/step_id", successes=3, **fields)
    html = read(f"/failures/{group.pk}/")
    assert html.count(">Withdraw<") == 1
    filtered = read(f"/failures/{group.pk}/?model=haiku")
    (form,) = re.findall(r"<form[^>]*>(?=.*>Withdraw<).*?</form>", filtered)
    sent = dict(re.findall(r'name="(\w+)" value="([^"]*)"', form))
    answer = client.post(f"/fix-patterns/{mine.pk}/approve/", sent)
    assert answer["Location"] == f"/failures/{group.pk}/?model=haiku"
    mine.refresh_from_db()
    assert mine.decision == "approved"


def test_runs_tell_how_they_ended(
    group: FailureGroup, project: Project, at: datetime, read: Read
) -> None:
    end = degraded(
        name="graph.plan.degraded",
        occurred_at=at.isoformat(),
        correlation_id="bad-0",
        reason="plan_parse_failed",
    )
    post_and_fold(project, end)
    html = read(f"/failures/{group.pk}/", tab="runs").partition('id="tabs"')[2]
    assert html.count("bad-") >= 10
    assert "Degraded</span>" in html
    assert html.count('<span class="dim">\u2013</span>') == 8


def test_history_is_told_and_comments_are_added(
    group: FailureGroup, project: Project, read: Read, client: Client
) -> None:
    groups.resolve(project.pk, [group.pk], None, "r9")
    sent = {"verb": "comment", "id": group.pk, "back": group.pk, "text": "Seen by me."}
    answer = client.post("/failures/act/", {**sent, "query": "tab=history"})
    assert answer["Location"] == f"/failures/{group.pk}/?tab=history"
    html = read(f"/failures/{group.pk}/", tab="history")
    assert "Seen by me." in html
    assert "r9" in html
    assert html.index("Seen by me.") < html.index("<b>found</b>")


def test_why_these_belong_together_and_what_else_would(
    project: Project, at: datetime, read: Read
) -> None:
    for pointer in ("/steps/0/tool", "/steps/0/title"):
        error = {"path": pointer, "code": "missing", "message": "required"}
        post_and_fold(
            project, truncated(at, parse_error_type="schema_invalid", validation_errors=[error])
        )
    group = FailureGroup.objects.get(pointer="/steps/*/tool")
    html = read(f"/failures/{group.pk}/", tab="why")
    assert str(group.fingerprint) in html
    assert "Would merge with" not in html
    html = read(f"/failures/{group.pk}/", tab="why", depth="2")
    assert "Would merge with" in html
    assert "/steps/*/title" in html
    assert "No change" in read(f"/failures/{group.pk}/", tab="why", ignore_schema="1")


def test_groups_lead_to_their_neighbours_in_the_list(
    project: Project, at: datetime, read: Read
) -> None:
    post_and_fold(
        project,
        *[
            truncated(at - timedelta(seconds=place), parse_error_type=kind)
            for place, kind in enumerate(("refusal", "not_json", "truncated"))
        ],
    )
    found = FailureGroup.objects.order_by("-pk")  # as many of each
    first, middle, last = found.values_list("pk", flat=True)
    html = read(f"/failures/{middle}/", range="7d")
    assert f'href="/failures/{first}/?range=7d" rel="prev"' in html
    assert f'href="/failures/{last}/?range=7d" rel="next"' in html
    assert 'rel="prev"' not in read(f"/failures/{first}/")


def test_queries_are_the_same_however_much_there_is(
    group: FailureGroup,
    project: Project,
    at: datetime,
    read: Read,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    for tab in ("samples", "runs", "history", "why"):
        read(f"/failures/{group.pk}/", tab=tab)
    with django_assert_max_num_queries(34) as few:
        read(f"/failures/{group.pk}/")
    post_and_fold(
        project, *[truncated(at, model=f"m{k}", prompt_version=f"p{k}") for k in range(60)]
    )
    with django_assert_max_num_queries(len(few)):
        html = read(f"/failures/{group.pk}/")
    assert len(html) < 60_000
    assert "+57 more" in html


def test_other_projects_groups_and_none_are_not_found(client: Client, at: datetime) -> None:
    other = Project.objects.create(slug="o", name="Other")
    post_and_fold(other, truncated(at))
    theirs = FailureGroup.objects.get(project=other).pk
    for path in (f"/failures/{theirs}/", "/failures/999999/"):
        assert client.get(path).status_code == 404
        assert client.get(f"{path}replay/").status_code == 404


def test_viewers_see_no_buttons(group: FailureGroup, project: Project) -> None:
    client = Client()
    client.force_login(make_member(project, "vic", Role.VIEWER))
    html = client.get(f"/failures/{group.pk}/?tab=history").content.decode()
    assert 'name="verb"' not in html

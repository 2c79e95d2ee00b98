"""The failures page: kinds under the filters, and what members say of them."""

import re
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
from django.db import connection
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from diagnostics import clock
from diagnostics.accounts.models import AuditEntry, Project
from diagnostics.failures import states as groups
from diagnostics.failures.counts import read_question
from diagnostics.failures.groups import groups_of
from diagnostics.failures.models import FailureGroup, GroupChange
from diagnostics.ingest.api.outcomes import PostedOutcome, record_outcomes
from diagnostics.selection.selection import read_selection
from diagnostics.store.partitions import ensure_partitions
from diagnostics.store.retention import index_words
from tests.console import Role, make_member, post_and_fold
from tests.diagnostics.builders import succeeded, wire_event

pytestmark = pytest.mark.django_db
KINDS = (
    *("not_json", "truncated", "refusal", "empty_output", "multiple_objects"),
    *("duplicate_key", "schema_invalid", "other"),
)
MODELS = tuple(f"model-{number}" for number in range(6))


@pytest.fixture
def client(client: Client, project: Project) -> Client:
    client.force_login(make_member(project))
    return client


def failed(at: datetime, kind: str = "not_json", **changes: Any) -> dict[str, Any]:
    return wire_event(occurred_at=at.isoformat(), parse_error_type=kind, **changes)


def page(client: Client, query: str = "", **headers: Any) -> str:
    answer = client.get(f"/failures/{query}", headers=headers)
    assert answer.status_code == 200
    return answer.content.decode()


def titles(html: str) -> list[str]:
    return re.findall(r'<a class="name" href="/failures/\d+/[^"]*">([^<]*)</a>', html)


def act(client: Client, verb: str, *ids: int, **more: str) -> str:
    sent = {"verb": verb, "id": [str(one) for one in ids], **more}
    answer = client.post("/failures/act/", sent, follow=True)
    assert answer.status_code == 200
    return answer.content.decode()


def the_group(project: Project) -> FailureGroup:
    return FailureGroup.objects.get(project=project)


def test_eight_kinds_of_failure_of_six_models_are_eight_lines(
    client: Client, project: Project, at: datetime
) -> None:
    post_and_fold(project, *[failed(at, kind, model=model) for kind in KINDS for model in MODELS])
    html = page(client)
    assert len(titles(html)) == len(set(titles(html))) == 8
    assert "8 open in 24 h" in html
    # Each line tells all six, the smallest as one.
    assert html.count("17\N{NARROW NO-BREAK SPACE}%, 3 more 50") == 8


def test_every_number_obeys_the_filter(client: Client, project: Project, at: datetime) -> None:
    good = [
        succeeded(occurred_at=at.isoformat(), model="a", correlation_id=f"r{k}") for k in range(6)
    ]
    post_and_fold(project, *good, failed(at, model="a"), failed(at, model="a"), failed(at))
    assert 'class="rate">3<' in page(client)
    html = page(client, "?model=a")
    assert 'class="rate">2<' in html
    assert "25.0\N{NARROW NO-BREAK SPACE}% of calls" in html
    assert "fake-1" not in html.partition('id="rows"')[2]
    assert titles(page(client, "?kind=refusal")) == []
    assert "No open failure matches" in page(client, "?kind=refusal")


def test_filters_that_no_rollup_knows_count_events_and_say_so(
    client: Client, project: Project, at: datetime
) -> None:
    post_and_fold(project, failed(at, attempt=2), failed(at), failed(at - timedelta(days=9)))
    html = page(client, "?attempt=2&range=30d")
    assert 'class="rate">1<' in html
    assert "the last 7 days of 30 d are shown" in html
    assert 'class="rate">2<' in page(client, "?q=json&range=30d")
    assert 'class="rate">3<' in page(client, "?range=30d")


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("Weather", 3),  # in what was answered, in what was said of it, in the source
        ("weather -wind", 2),
        ("-weather", 1),
        ("-nowhere", 4),
        ("wind reader", 1),
        ("60%", 1),  # a sign of its own
        ("wea%er", 0),
        ("w_ather", 0),
        ("nowhere", 0),
    ],
)
def test_words_are_looked_for_in_a_failure_and_its_details(
    client: Client, project: Project, at: datetime, asked: str, found: int
) -> None:
    said = [{"path": "/city", "message": "no WEATHER there"}]
    post_and_fold(
        project,
        failed(at, raw_output_preview="the weather: wind", source="reader"),
        failed(at, validation_errors=said),
        failed(at, source="weather-agent"),
        failed(at, raw_output_preview="sure at 60%"),
        succeeded(occurred_at=at.isoformat(), source="weather-agent"),
    )
    html = page(client, f"?{urlencode({'q': asked})}")
    assert ('class="rate">' in html) == bool(found)
    assert (f'class="rate">{found}<' in html) == bool(found)


ASKED = (
    *("weather", "WEATHER", "city", "60%", "wea%er", "w_ather", r"back\slash", "Überlauf", "r-2"),
    *("weather -wind", "-weather", "weather city", "fetch", "Timeout", "60% -60%", "w"),
)


@pytest.mark.django_db(transaction=True)
def test_words_are_found_with_an_index_as_they_are_without(project: Project) -> None:
    ensure_partitions()
    at = clock.now() - timedelta(days=2)
    said = [{"path": "/city", "message": "no WEATHER there"}]
    post_and_fold(
        project,
        failed(at, "truncated", raw_output_preview="the weather: wind", source="reader"),
        failed(at, "refusal", validation_errors=said),
        failed(at, "other", source="weather-agent", correlation_id="r-22"),
        failed(at, "not_json", raw_output_preview=r"sure at 60% with a back\slash, ÜBERLAUF"),
        failed(at, "schema_invalid", tool="fetch_weather", original_error_type="TimeoutError"),
    )

    def answers() -> list[list[tuple[int, int]]]:
        now = clock.now()
        selections = (read_selection({"range": "7d", "q": asked}) for asked in ASKED)
        found = (groups_of(project.pk, read_question(one, now)[0], 50)[0] for one in selections)
        return [sorted((row.group.pk, row.seen) for row in rows) for rows in found]

    with connection.cursor() as cursor:
        cursor.execute("SET enable_seqscan = off")
        try:
            plain = answers()
            built = index_words()
            assert built
            assert answers() == plain
        finally:
            cursor.execute("RESET enable_seqscan")
            for name in built:
                cursor.execute(f"DROP INDEX {name}")
    assert [len(rows) for rows in plain] == [4, 4, 1, 1, 0, 0, 1, 1, 1, 3, 1, 1, 1, 1, 0, 5]


def test_states_are_tabs_with_their_counts(client: Client, project: Project, at: datetime) -> None:
    post_and_fold(project, failed(at), failed(at, "refusal"))
    muted = FailureGroup.objects.get(error_type="refusal")
    groups.mute(project.pk, [muted.pk], None)
    html = page(client)
    assert "Muted <small>1</small>" in html
    assert "New <small>1</small>" in html
    assert titles(page(client, "?state=muted")) == ["Refusal · next_step"]
    assert titles(html) == titles(page(client, "?state=nonsense")) == ["Not JSON · next_step"]
    assert len(titles(page(client, "?state=all"))) == 2


def test_pages_are_turned_in_every_order(
    client: Client, project: Project, at: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("diagnostics.failures.views.PAGE", 3)
    post_and_fold(project, *[failed(at, kind) for kind in KINDS])
    for sort in ("latest", "most", "rising"):
        found, path = list[str](), f"?sort={sort}"
        while path:
            html = page(client, path)
            found += titles(html)
            more = re.search(r'href="(\?[^"]*after=[^"]*)"', html)
            path = more[1].replace("&amp;", "&") if more else ""
        assert len(found) == len(set(found)) == 8
    assert len(titles(page(client, "?after=nonsense"))) == 3


def test_queries_are_the_same_however_much_there_is(
    client: Client,
    project: Project,
    at: datetime,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    post_and_fold(project, failed(at))
    page(client)
    with django_assert_max_num_queries(16) as few:
        page(client)
    post_and_fold(project, *[failed(at, kind, model=m) for kind in KINDS for m in MODELS])
    with django_assert_max_num_queries(len(few)):
        html = page(client)
    assert len(html) < 60_000


def test_a_project_without_failures_is_shown_what_would_fill_it(
    client: Client, project: Project
) -> None:
    html = page(client)
    assert "api/v1/events" in html
    # A command would act on the default project.
    assert "manage.py" not in html


def test_failures_of_other_projects_are_not_shown(client: Client, at: datetime) -> None:
    other = Project.objects.create(slug="o", name="Other")
    post_and_fold(other, failed(at))
    assert titles(page(client)) == []
    group = the_group(other)
    act(client, "resolve", group.pk)
    act(client, "comment", group.pk, text="mine")
    group.refresh_from_db()
    assert group.state == "new"
    assert not GroupChange.objects.filter(kind="comment").exists()


def test_several_are_resolved_at_once_and_reopened(
    client: Client, project: Project, at: datetime
) -> None:
    post_and_fold(project, failed(at), failed(at, "refusal"), failed(at, "truncated"))
    ids = list(FailureGroup.objects.values_list("pk", flat=True))
    html = act(client, "resolve", *ids[:2], query="sort=most&state=all")
    assert "2 failures resolved" in html
    assert titles(html) != []
    assert FailureGroup.objects.filter(state="resolved").count() == 2
    assert "No change" in act(client, "resolve", ids[0])
    act(client, "reopen", *ids)
    assert not FailureGroup.objects.filter(state="resolved").exists()
    actions = AuditEntry.objects.filter(chain=project.pk).values_list("action")
    assert {one for (one,) in actions} == {"group.resolved", "group.reopened"}


def test_resolved_in_a_release_names_it(client: Client, project: Project, at: datetime) -> None:
    post_and_fold(project, failed(at, release="r1"))
    group = the_group(project)
    assert "Enter the release" in act(client, "resolve_in", group.pk, release=" ")
    act(client, "resolve_in", group.pk, release="r2")
    group.refresh_from_db()
    assert (group.state, group.fixed_in, group.releases_before) == ("resolved", "r2", ["r1"])


@pytest.mark.parametrize(
    ("verb", "sent", "until", "seen"),
    [
        ("mute", {"span": "day"}, True, None),
        ("mute", {"span": "ever"}, False, None),
        ("mute_times", {"more": "100"}, False, 101),
    ],
    ids=["for a day", "until reopened", "until seen again"],
)
def test_failures_are_muted(
    client: Client,
    project: Project,
    at: datetime,
    verb: str,
    sent: dict[str, str],
    until: bool,
    seen: int | None,
) -> None:
    post_and_fold(project, failed(at))
    act(client, verb, the_group(project).pk, **sent)
    group = the_group(project)
    assert group.state == "muted"
    assert (group.muted_until is not None) is until
    assert group.muted_until_seen == seen


@pytest.mark.parametrize(
    ("verb", "sent", "said"),
    [
        ("mute", {"span": "year"}, "Choose a duration"),
        ("mute_times", {"more": "-1"}, "Enter a number from 1"),
        ("mute_times", {"more": "1" * 30}, "Enter a number from 1"),
        ("comment", {"text": "  "}, "Enter a comment"),
        ("explode", {}, "Choose an action"),
    ],
)
def test_what_makes_no_sense_is_refused_in_words(
    client: Client, project: Project, at: datetime, verb: str, sent: dict[str, str], said: str
) -> None:
    post_and_fold(project, failed(at))
    assert said in act(client, verb, the_group(project).pk, **sent)
    assert the_group(project).state == "new"


def test_nothing_picked_is_said(client: Client, project: Project) -> None:
    assert "Select at least one" in act(client, "resolve")
    sent = {"verb": "resolve", "id": ["x", "9" * 30]}
    answer = client.post("/failures/act/", sent, follow=True)
    assert "Select at least one" in answer.content.decode()


def test_viewers_look_and_change_nothing(project: Project, at: datetime) -> None:
    post_and_fold(project, failed(at))
    client = Client()
    client.force_login(make_member(project, "vic", Role.VIEWER))
    html = page(client)
    assert len(titles(html)) == 1
    assert 'name="verb"' not in html
    assert 'name="id"' not in html
    sent = {"verb": "resolve", "id": [str(the_group(project).pk)]}
    assert client.post("/failures/act/", sent).status_code == 403
    assert the_group(project).state == "new"
    assert client.get("/failures/act/").status_code == 405


def test_the_way_back_leads_nowhere_else(client: Client, project: Project, at: datetime) -> None:
    post_and_fold(project, failed(at))
    group = the_group(project)
    sent = {"verb": "resolve", "id": [str(group.pk)], "query": "//evil.invalid/\r\nx=1"}
    answer = client.post("/failures/act/", {**sent, "back": "//evil.invalid"})
    assert answer["Location"].startswith("/failures/?")
    answer = client.post("/failures/act/", {**sent, "back": str(group.pk)})
    assert answer["Location"].startswith(f"/failures/{group.pk}/?")
    answer = client.post("/failures/act/", {**sent, "back": "999999"})
    assert answer["Location"].startswith("/failures/?")


def test_comments_are_redacted(client: Client, project: Project, at: datetime) -> None:
    post_and_fold(project, failed(at))
    secret = "password=" + "hunter" + "2hunter2"
    act(client, "comment", the_group(project).pk, text=f"see {secret}")
    assert "2hunter2" not in GroupChange.objects.get(kind="comment").text
    assert not AuditEntry.objects.filter(details__contains="2hunter2").exists()


def test_hostile_texts_are_shown_as_text(client: Client, project: Project, at: datetime) -> None:
    text = "<script>pwned=1</script>"
    error = {"path": f"/{text}", "code": text, "message": text}
    post_and_fold(
        project, failed(at, "schema_invalid", model=text, schema=text, validation_errors=[error])
    )
    assert text not in page(client)


def test_the_kind_that_rose_most_comes_first(
    client: Client, project: Project, at: datetime
) -> None:
    post_and_fold(project, *[failed(at - timedelta(minutes=2), "truncated") for _ in range(5)])
    post_and_fold(project, failed(at, "refusal"))
    assert titles(page(client)) == ["Truncated · next_step", "Refusal · next_step"]
    assert "<small>truncated" in page(client)


def test_failing_calls_of_an_agent_that_posts_outcomes_are_counted_against_runs(
    client: Client, project: Project, at: datetime
) -> None:
    outcome = {
        "minute": at.replace(second=0, microsecond=0).isoformat(),
        "source": "bot",
        "node": "next_step",
        "provider": "fake",
        "model": "fake-1",
        "ok_first": 4_750,
        "degraded": 150,
    }
    record_outcomes(project.pk, [PostedOutcome.model_validate(outcome)])
    post_and_fold(project, *[failed(at, "truncated", correlation_id=f"r-{n}") for n in range(60)])
    html = page(client)
    assert "in 4.9\u202fk runs" in html
    assert "of calls" not in html
    told = client.get(f"/failures/{the_group(project).pk}/").content.decode()
    assert "60 failures in 24 h in 4,900 runs" in told
    assert "100.0\u202f%" not in told.split("says")[1][:200]
    models = client.get("/models/").content.decode()
    assert "100.0\u202f%" not in models
    assert "1.2\u202f%" in models

"""The Now page, read as HTML."""

import re
from copy import deepcopy
from datetime import datetime, timedelta
from html import unescape
from itertools import product
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoAssertNumQueries

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.alerting import statuses
from diagnostics.alerting.incident_models import IncidentSlice
from diagnostics.alerting.statuses import store_statuses
from diagnostics.ingest.key_counts import note_items
from diagnostics.ingest.models import Deploy
from diagnostics.ingest.recording import record
from diagnostics.purge import purge_project
from diagnostics.store.aggregation import fold
from diagnostics.store.kept_answers import ResultCache
from diagnostics.verdict.ratings import VerdictMark
from failsoft.events import PostedEvent
from tests.console import Role, make_member, post_runs
from tests.diagnostics.alerting.notifications.building import VERDICT, make_incident
from tests.diagnostics.builders import degraded, make_event, succeeded

pytestmark = pytest.mark.django_db


@pytest.fixture
def client(client: Client, project: Project) -> Client:
    client.force_login(make_member(project))
    return client


def page(client: Client, query: str = "", **headers: Any) -> str:
    return client.get(f"/{query}", headers=headers).content.decode()


def incident(project: Project, at: datetime) -> None:
    """A calm week, then an hour in which a third of the runs of one of two models degrade."""
    post_runs(project, 190, 10, at - timedelta(days=2))
    post_runs(project, 40, 20, at)
    for age in (timedelta(days=2), timedelta(0)):
        post_runs(project, 60, 0, at - age, model="fake-2")
    failed = [
        make_event(
            occurred_at=(at - timedelta(seconds=number)).isoformat(), parse_error_type="truncated"
        )
        for number in range(20)
    ]
    record(project.pk, failed)


def test_s0_57_page_lists_counts_per_model_and_window(
    client: Client, project: Project, at: datetime
) -> None:
    incident(project, at)
    html = page(client)
    assert "fake-1" in html
    assert "33.3" in html
    assert 'data-label="runs">60<' in html
    assert 'data-label="runs">260<' in page(client, "?range=7d")


def test_incident_to_acknowledge_is_the_one_that_the_verdict_is_about(
    client: Client, project: Project, at: datetime
) -> None:
    incident(project, at)
    its_own = make_incident(project, "fake-1")
    IncidentSlice.objects.filter(incident=its_own).update(
        slice={"provider": "fake", "model": "fake-1"}
    )
    make_incident(project, "gpt-5")
    html = page(client)
    assert f"/incidents/{its_own.pk}/acknowledge/" in html
    assert "No incident yet" not in html


def test_s0_57_first_line_names_model_rate_and_kind(
    client: Client, project: Project, at: datetime
) -> None:
    incident(project, at)
    html = page(client)
    assert "Degrading since <time" in html
    assert "fake/fake-1, 33" in html
    assert "mostly truncated" in html
    assert "Looks like the model or provider, not us" in html
    assert "Raise the output token budget" in html
    assert 'aria-live="polite"' in html


def test_all_within_baseline_is_said(client: Client, project: Project, at: datetime) -> None:
    post_runs(project, 60, 0, at - timedelta(days=3))
    post_runs(project, 60, 0, at)
    assert "The model is within baseline" in page(client)


def test_on_its_first_day_a_project_has_no_baseline(
    client: Client, project: Project, at: datetime
) -> None:
    post_runs(project, 30, 30, at)
    html = page(client)
    assert "No baseline yet" in html
    assert "60 calls evaluated, none of them older than a day." in html
    assert "within baseline" not in html


def test_few_runs_are_not_enough_data(client: Client, project: Project, at: datetime) -> None:
    post_runs(project, 3, 3, at)
    html = page(client)
    assert "Not enough data" in html
    assert "n &lt; 20" in html


def test_empty_project_shows_what_would_fill_it(client: Client) -> None:
    html = page(client)
    assert "Waiting for the first event." in html
    assert "/api/v1/events" in html
    # A command would act on the default project.
    assert "manage.py" not in html


def test_filters_hold_for_every_number(client: Client, project: Project, at: datetime) -> None:
    post_runs(project, 30, 0, at - timedelta(days=3), model="calm")
    post_runs(project, 30, 0, at, model="calm")
    post_runs(project, 0, 30, at, model="broken", environment="prod")
    html = page(client, "?model=calm")
    assert "The model is within baseline" in html
    assert "broken" not in html.split('id="live"')[1]
    assert 'aria-label="Remove the filter model calm"' in html


def test_filter_of_null_finds_what_agents_did_not_say(
    client: Client, project: Project, at: datetime
) -> None:
    post_runs(project, 30, 0, at, model=None)
    post_runs(project, 30, 0, at, model="named")
    live = page(client, "?model=-").split('id="live"')[1]
    assert ">unknown</a>" in live
    assert "named" not in live


def test_no_match_is_no_empty_project(client: Client, project: Project, at: datetime) -> None:
    post_runs(project, 30, 0, at)
    html = page(client, "?model=nobody")
    assert "No run matches" in html
    assert "Waiting for the first event" not in html


@pytest.mark.parametrize("query", ["?range=%00", "?model=%00&range=1h", "?provider=%FF"])
def test_hostile_queries_are_answered(client: Client, query: str) -> None:
    assert client.get(f"/{query}").status_code == 200


def test_latest_degraded_runs_lead_to_their_reference(
    client: Client, project: Project, at: datetime
) -> None:
    post_runs(project, 0, 12, at)
    html = page(client)
    assert html.count("/find/?reference=") == 10


def test_a_page_beyond_the_last_keeps_the_order_that_is_asked_for(
    client: Client, project: Project, at: datetime
) -> None:
    post_runs(project, 40, 0, at)
    html = unescape(page(client, "?sort=tokens&show=all&page=9"))
    assert set(re.findall(r'[^"]*sort=-tokens[^"]*', html)) == {"?sort=-tokens&show=all"}


def test_refresh_is_the_page_without_frame(client: Client, project: Project, at: datetime) -> None:
    post_runs(project, 30, 0, at)
    fragment = page(client, HX_Request="true")
    assert "<html" not in fragment
    title, _, rest = fragment.partition("</title>")
    assert title.startswith("<title>")
    assert title.endswith(" · Failsoft")
    assert rest.lstrip().startswith('<div class="stack" id="page">')
    assert 'id="live"' in page(client)


def test_history_restore_gets_the_whole_page(client: Client) -> None:
    headers = {"HX-Request": "true", "HX-History-Restore-Request": "true"}
    assert b"<html" in client.get("/", headers=headers).content


def test_unchanged_page_is_answered_with_304(
    client: Client, project: Project, at: datetime
) -> None:
    post_runs(project, 30, 0, at)
    first = client.get("/", headers={"HX-Request": "true"})
    again = client.get("/", headers={"HX-Request": "true", "If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
    assert "HX-Request" in first["Vary"]
    assert "Cookie" in first["Vary"]


def test_changed_page_is_sent_again(client: Client, project: Project, at: datetime) -> None:
    post_runs(project, 30, 0, at)
    tag = client.get("/")["ETag"]
    post_runs(project, 1, 0, at)
    assert client.get("/", headers={"If-None-Match": tag}).status_code == 200


def test_a_page_is_sent_again_with_the_token_of_another_sign_in(client: Client) -> None:
    client.handler.enforce_csrf_checks = True
    tag = client.get("/")["ETag"]
    # Signing in again rotates it.
    client.cookies["csrftoken"] = "x" * 32
    html = client.get("/", headers={"If-None-Match": tag}).content.decode()
    token = re.findall(r'name="csrfmiddlewaretoken" value="([^"]+)"', html)[0]
    sent = {"csrfmiddlewaretoken": token, "theme": "dark"}
    assert client.post("/account/theme/", sent).status_code == 302


def test_query_count_does_not_grow_with_the_series(
    client: Client,
    project: Project,
    at: datetime,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    post_runs(project, 30, 0, at)
    for number in range(12):
        post_runs(project, 5, 1, at, model=f"m{number}")
    # Session, user, memberships, clock, alarm; curves, series, kinds, verdict, statuses,
    # marks, incident, groups, latest; filters; cells since five times, and before.
    with django_assert_max_num_queries(40):
        client.get("/")
    store_statuses(project.pk, clock.now())
    with django_assert_max_num_queries(22):
        client.get("/")


def test_series_has_a_rate_from_its_first_success_on(
    client: Client, project: Project, at: datetime
) -> None:
    post_runs(project, 60, 0, at, model="known")
    failed = {"correlation_id": "one", "occurred_at": clock.now().isoformat()}
    record(project.pk, [make_event(**failed)])
    store_statuses(project.pk, clock.now())
    assert "only failures reported" in page(client)
    retried = succeeded(**{**failed, "attempt": 2, "occurred_at": clock.now().isoformat()})
    record(project.pk, [PostedEvent.model_validate(retried)])
    html = page(client)
    assert "only failures reported" not in html
    assert "low volume" in html


def test_page_of_many_series_keeps_the_budgets(
    client: Client, project: Project, at: datetime
) -> None:
    for number in range(40):
        post_runs(project, 20, number % 7, at, model=f"model-{number}")
    html = page(client)
    assert len(html.encode()) <= 60_000
    assert html.count("<") - html.count("</") <= 1_500
    assert "15 of 40 models, 40 series" in html


def test_other_projects_are_not_counted(client: Client, at: datetime) -> None:
    other = Project.objects.create(slug="other", name="Other")
    post_runs(other, 30, 30, at, model="foreign")
    assert "foreign" not in page(client)


def test_signed_out_reader_is_sent_to_sign_in(project: Project) -> None:
    answer = Client().get("/")
    assert answer.status_code == 302
    assert answer["Location"].startswith("/accounts/login/")


def test_refresh_after_the_session_ended_reloads_the_page(project: Project) -> None:
    answer = Client().get("/", headers={"HX-Request": "true"})
    assert answer["HX-Refresh"] == "true"
    assert b"password" not in answer.content


def test_series_with_few_runs_stand_below_the_latest_first(
    client: Client, project: Project, at: datetime
) -> None:
    post_runs(project, 3, 3, at - timedelta(hours=9), model="early")
    post_runs(project, 2, 0, at, model="late")
    post_runs(project, 30, 0, at, model="busy")
    html = page(client).split("<tbody>")[1]
    assert html.index(">busy<") < html.index(">late<") < html.index(">early<")


def test_person_without_a_project_is_told_so(db: None) -> None:
    client = Client()
    outsider = make_member(Project.objects.create(slug="x", name="X"), "bob")
    outsider.memberships.all().delete()
    client.force_login(outsider)
    answer = client.get("/")
    assert answer.status_code == 403
    assert b"not a member of any project" in answer.content


def test_projects_are_switched_among_ones_own(
    client: Client, project: Project, at: datetime
) -> None:
    second = Project.objects.create(slug="second", name="Second")
    make_member(second, role=Role.VIEWER)
    post_runs(second, 30, 0, at, model="of-the-second")
    assert client.post("/project/", {"project": "second"}).status_code == 302
    assert "of-the-second" in page(client)


@pytest.mark.parametrize("slug", ["foreign", "unknown", ""])
def test_foreign_and_unknown_projects_are_both_not_found(client: Client, slug: str) -> None:
    Project.objects.create(slug="foreign", name="Foreign")
    assert client.post("/project/", {"project": slug}).status_code == 404


def test_no_inline_script_or_style(client: Client, project: Project, at: datetime) -> None:
    incident(project, at)
    html = page(client)
    assert " style=" not in html
    assert "<style" not in html
    assert "onclick" not in html
    assert all("src=" in tag for tag in re.findall(r"<script[^>]*>", html))


def degrade(project: Project, at: datetime) -> None:
    post_runs(project, 190, 2, at - timedelta(days=2))
    incident(project, at)


def test_a_verdict_is_marked_right_by_those_who_may(
    client: Client, project: Project, at: datetime
) -> None:
    degrade(project, at)
    html = page(client)
    assert "Was this verdict right?" in html
    shown = dict(re.findall(r'name="(verdict)" value="([^"]+)"', html))
    answer = client.post("/verdict/mark/", {"said": "right", "query": "range=24h", **shown})
    assert (answer.status_code, answer["Location"]) == (302, "/")
    mark = VerdictMark.objects.get(project=project)
    assert (mark.is_right, mark.cause) == (True, "model")
    assert mark.verdict["sentence"].startswith("Degrading since")
    # A share of so few ratings says nothing.
    assert "rated verdicts correct" not in client.get("/incidents/").content.decode()
    client.post("/verdict/mark/", {"said": "wrong", "query": "", **shown})
    assert VerdictMark.objects.get(project=project).is_right is False


def test_the_verdict_that_was_shown_is_marked_whatever_holds_by_now(
    client: Client, project: Project, at: datetime
) -> None:
    degrade(project, at)
    shown = dict(re.findall(r'name="(verdict)" value="([^"]+)"', page(client)))
    purge_project(project)
    client.post("/verdict/mark/", {"said": "wrong", "query": "", **shown})
    assert VerdictMark.objects.get(project=project).cause == "model"
    other = Project.objects.create(slug="other", name="Other")
    client.force_login(make_member(other, "olga"))
    client.post("/verdict/mark/", {"said": "wrong", "query": "", **shown}, follow=True)
    assert not VerdictMark.objects.filter(project=other).exists()


def test_the_evidence_of_the_verdict_is_a_text_to_copy(
    client: Client, project: Project, at: datetime
) -> None:
    incident(project, at)
    fold()
    assert 'href="/verdict/task/" data-copy-from' in page(client)
    answer = client.get("/verdict/task/", headers={"Accept": "text/plain"})
    text = answer.content.decode()
    assert "\n# `Degrading since" in text
    assert "- Affected: `fake/fake-1" in text
    assert "Truncated`, node" in text
    assert "```text\n   not json" in text
    assert "api/v1/verdict?" in text
    assert "Raise the output token budget" in text


def test_viewers_mark_nothing(project: Project, at: datetime) -> None:
    degrade(project, at)
    viewer = Client()
    viewer.force_login(make_member(project, "vic", Role.VIEWER))
    assert "Was this verdict right?" not in viewer.get("/").content.decode()
    assert viewer.post("/verdict/mark/", {"said": "right"}).status_code == 403


def test_what_is_within_baseline_cannot_be_marked(
    client: Client, project: Project, at: datetime
) -> None:
    post_runs(project, 60, 0, at)
    client.post("/verdict/mark/", {"said": "right", "query": ""})
    assert not VerdictMark.objects.exists()


def test_deploys_are_marks_in_the_curves(client: Client, project: Project, at: datetime) -> None:
    post_runs(project, 30, 0, at)
    assert 'class="tick"' not in page(client)
    Deploy.objects.create(project=project, at=at, kind="release", version="r2")
    assert 'class="tick"' in page(client)


def test_rows_lead_to_the_page_of_their_model(
    client: Client, project: Project, at: datetime
) -> None:
    post_runs(project, 30, 0, at)
    assert 'href="/models/fake/fake-1/' in page(client)


def test_new_kinds_of_failure_stand_beside(client: Client, project: Project, at: datetime) -> None:
    degrade(project, at)
    fold()
    assert "Truncated" in page(client).split('id="fresh-heading"')[1]
    assert re.search(
        r'/failures/\d+/\?range=7d&amp;model=fake-1"', page(client, "?range=7d&model=fake-1")
    )


def test_a_card_and_a_row_say_what_time_they_count(
    project: Project, client: Client, at: datetime
) -> None:
    incident(project, at)
    assert "runs, last 24 h vs previous 7 d</span>" in page(client)
    make_incident(project)
    words = "runs, last 24 h vs previous 7 d; incidents count runs since their onset</span>"
    assert words in page(client)


def test_one_press_acknowledges_on_now_and_stays_there(project: Project, client: Client) -> None:
    row = make_incident(project)
    here = "/?model=claude-haiku"
    card = page(client, "?model=claude-haiku").split('<article class="cause')[1]
    assert card.count(f'<input type="hidden" name="next" value="{here}">') == 2
    answer = client.post(f"/incidents/{row.pk}/acknowledge/", {"next": here}, follow=True)
    assert answer.redirect_chain == [(here, 302)]
    html = answer.content.decode()
    assert "Acknowledged: reminders stop." in html
    card = html.split('<article class="cause')[1]
    assert re.search(r"acknowledged\s*</span> <span>by ann</span>", card)
    assert ">Acknowledge<" not in card
    elsewhere = client.post(
        f"/incidents/{row.pk}/acknowledge/", {"next": "https://elsewhere.example/"}
    )
    assert elsewhere["Location"] == f"/incidents/{row.pk}/"


def test_a_card_counts_the_advice_that_it_does_not_show(project: Project, client: Client) -> None:
    one, three = VERDICT["advice"], [{"text": f"Do {name}.", "evidence": ""} for name in "abc"]
    row = make_incident(project, "m-1", verdict={**VERDICT, "advice": one})
    assert "recommendation" not in page(client).split('<article class="cause')[1]
    row.delete()
    row = make_incident(project, "m-2", verdict={**VERDICT, "advice": three})
    card = page(client).split('<article class="cause')[1]
    assert "Do a." in card
    assert "Do b." not in card
    assert f'href="/incidents/{row.pk}/#advice">+2 recommendations</a>' in card
    assert 'id="advice"' in client.get(f"/incidents/{row.pk}/").content.decode()


def test_two_incidents_at_once_are_two_cards_with_a_sentence_and_a_button_each(
    client: Client, project: Project
) -> None:
    told = deepcopy(VERDICT)
    told["told"] |= {"since": "2026-11-22T20:26:00Z", "rest": ": fake/m-2, 12\u202f% of 80 runs."}
    first = make_incident(project, "claude-haiku", severity="critical")
    second = make_incident(project, "m-2", verdict=told, cause="prompt", cause_value="co-v7")
    html = page(client)
    assert html.count('<article class="cause') == 2
    assert ": anthropic/claude-haiku, 31 % of 412 runs" in html
    assert ": fake/m-2, 12\u202f% of 80 runs" in html
    assert html.index('datetime="2026-11-22T14:32') < html.index('datetime="2026-11-22T20:26')
    for one in (first, second):
        assert f"/incidents/{one.pk}/acknowledge/" in html
        assert f"/incidents/{one.pk}/silence/" in html
    assert html.index("claude-haiku, 31") < html.index("fake/m-2, 12")
    assert "do not tell the cause" not in html
    titles = client.get("/incidents/").content.decode()
    assert ": fake/m-2, 12\u202f% of 80 runs" in titles
    assert ": anthropic/claude-haiku, 31 % of 412 runs" in titles


def test_a_card_has_the_curve_of_its_own_calls(
    client: Client, project: Project, at: datetime
) -> None:
    make_incident(project, "m-1")
    make_incident(project, "m-2")
    in_a_finished_slot = at - timedelta(minutes=10)
    post_runs(project, 15, 5, in_a_finished_slot, provider="anthropic", model="m-1")
    cards = page(client).split('<article class="cause')[1:]
    (drawn,) = [card for card in cards if "Failure rate of runs" in card]
    assert "anthropic/m-1" in drawn
    assert "latest 25.0\u202f% of 20 runs" in drawn


def test_three_cards_at_most_and_a_link_to_the_others(client: Client, project: Project) -> None:
    for number in range(5):
        make_incident(project, f"m-{number}")
    html = page(client)
    assert html.count('<article class="cause') == 3
    assert '<a href="/incidents/">+2 more</a>' in html


def test_a_filter_keeps_the_incidents_that_it_touches(client: Client, project: Project) -> None:
    make_incident(project, "kept")
    make_incident(project, "other")
    html = page(client, "?model=kept")
    assert html.count('<article class="cause') == 1
    assert "anthropic/kept" in html.split('class="cause')[1]


def test_queries_of_cards_do_not_grow_with_the_incidents(client: Client, project: Project) -> None:
    make_incident(project, "m-0")
    with CaptureQueriesContext(connection) as one:
        page(client)
    make_incident(project, "m-1")
    make_incident(project, "m-2")
    with CaptureQueriesContext(connection) as three:
        page(client)
    assert len(three) == len(one)


def post_nodes(project: Project, at: datetime, models: int, nodes: int) -> None:
    """Record 24 runs of each model at each node; half of the first model's degrade, for once."""
    for model, node in product(range(models), range(nodes)):
        bad = 0 if model else 12
        past = range(24, 24 if model else 84)
        before = at - timedelta(days=2)
        record(project.pk, [_ended(before, f"node_{node}", model, number, 0) for number in past])
        sent = [_ended(at, f"node_{node}", model, number, bad) for number in range(24)]
        record(project.pk, sent)


def _ended(at: datetime, node: str, model: int, number: int, bad: int) -> PostedEvent:
    fields = {
        "occurred_at": (at - timedelta(seconds=number)).isoformat(),
        "correlation_id": f"run-{model}-{node}-{number}",
        "model": f"model-{model:02}-{'long' * 12}",
    }
    if number >= bad:
        return PostedEvent.model_validate(succeeded(name=f"graph.{node}.succeeded", **fields))
    why = f"{node}_parse_failed"
    told = degraded(name=f"graph.{node}.degraded", reason=why, **fields)
    return PostedEvent.model_validate(told)


@pytest.mark.slow
@pytest.mark.parametrize("query", ["", "?show=all", "?sort=runs&page=2", "?open=fake/none"])
def test_240_series_stay_within_the_budgets(
    client: Client, project: Project, at: datetime, query: str
) -> None:
    post_nodes(project, at, 30, 8)
    for model in ("m-1", "m-2"):
        make_incident(project, model)
    html = page(client, query)
    assert "30 models, 240 series" in html
    assert len(html.encode()) <= 60_000
    assert html.count("<") - html.count("</") <= 1_500


def test_a_model_folds_open_to_its_series_by_a_link(
    client: Client, project: Project, at: datetime
) -> None:
    post_nodes(project, at, 2, 3)
    html = page(client)
    opened = re.findall(r'class="fold" href="([^"]*)" aria-expanded="(true|false)"', html)
    # The worst one is open, for it degrades.
    assert [state for _, state in opened] == ["true", "false"]
    assert html.count('<tr class="part">') == 3
    both = page(client, unescape(opened[1][0]))
    assert both.count('<tr class="part">') == 6
    assert 'aria-expanded="false"' not in both.split("<tbody>")[1]
    assert page(client, unescape(opened[0][0])).count('<tr class="part">') == 0


def test_names_with_a_slash_share_no_row(client: Client, project: Project, at: datetime) -> None:
    for provider, model in (("a/b", "c"), ("a", "b/c")):
        for node in ("plan", "check"):
            name = f"graph.{node}.succeeded"
            post_runs(project, 30, 0, at, provider=provider, model=model, name=name)
    first, second = re.findall(r'class="fold" href="([^"]+)"', page(client))
    for address in (first, second):
        assert page(client, unescape(address)).count('<tr class="part">') == 2


@pytest.mark.parametrize(
    ("sort", "first"), [("runs", "busy"), ("-runs", "few"), ("degraded", "few"), ("model", "busy")]
)
def test_models_are_sorted_by_any_column(
    client: Client, project: Project, at: datetime, sort: str, first: str
) -> None:
    post_runs(project, 60, 0, at, model="busy")
    post_runs(project, 25, 3, at, model="few")
    rows = page(client, f"?sort={sort}").split("<tbody>")[1]
    assert rows.index(f">{first}<") == min(rows.index(">busy<"), rows.index(">few<"))


def test_later_pages_and_all_models_are_reached_by_links(
    client: Client, project: Project, at: datetime
) -> None:
    for number in range(17):
        post_runs(project, 25, 0, at, model=f"m-{number:02}")
    html = page(client, "?sort=model")
    assert ">m-16<" not in html
    follow = re.search(r'<a href="([^"]*)" rel="next">Next', html)
    assert follow
    assert ">m-16<" in page(client, unescape(follow[1]))
    everything = re.search(r'<a href="([^"]*)">Show all', html)
    assert everything
    assert ">m-16<" in page(client, unescape(everything[1]))


def test_a_series_without_a_cause_yet_is_one_quiet_line(
    client: Client, project: Project, at: datetime
) -> None:
    incident(project, at)
    html = page(client)
    assert "No incident yet" in html
    assert '<article class="cause' not in html
    assert "minutes late" not in html


def test_events_that_come_too_late_for_alerts_are_named_where_no_alert_fired(
    client: Client, project: Project, at: datetime
) -> None:
    incident(project, at)
    key = issue_key(project, "k", [Scope.INGEST]).row
    note_items(key, {("", "late"): 1_200})
    assert "1,200 items of the last hour arrived more than 15 minutes late" in page(client)


def test_a_page_does_not_wait_for_its_verdict_but_loads_it_afterwards(
    client: Client, project: Project, at: datetime, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    incident(project, at)
    settings.FAILSOFT_VERDICT_SECONDS = 10
    monkeypatch.setattr(statuses, "_sets", ResultCache(beside=lambda _: None))
    first = page(client, "?prompt_version=v1")
    assert "Judging these calls" in first
    assert re.search(r'<a href="/"[^>]* aria-current="page"[^>]*>Now<', first)
    assert 'hx-get="/?prompt_version=v1" hx-trigger="load"' in first
    assert "models-heading" not in first
    loaded = page(client, "?prompt_version=v1", HX_Request="true")
    assert "models-heading" in loaded
    assert "Judging these calls" not in loaded
    assert "models-heading" in page(client, "?prompt_version=v1")


def test_a_file_waits_for_the_statuses_that_it_lists(
    client: Client, project: Project, at: datetime, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    incident(project, at)
    settings.FAILSOFT_VERDICT_SECONDS = 10
    monkeypatch.setattr(statuses, "_sets", ResultCache(beside=lambda _: None))
    rows = b"".join(client.get("/export/series.csv"))
    assert b"fake-2" in rows

"""Pages of incidents: what is open, what was, one from onset to end, and acting on it."""

import csv
import re
from datetime import UTC, timedelta
from html import unescape

import pytest
from django.contrib.auth.models import User
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from diagnostics import clock
from diagnostics.accounts.models import AuditEntry, Membership, Project
from diagnostics.alerting.incident_charts import incident_chart, small_charts
from diagnostics.alerting.incident_models import Incident, IncidentSlice
from diagnostics.alerting.rule_models import AlertState, Evaluation, Silence
from diagnostics.ingest.recording import record
from diagnostics.store.aggregation import fold
from diagnostics.store.windows import floor
from diagnostics.verdict.ratings import VerdictMark
from diagnostics.web.charts.series import draw_series
from tests.console import make_member, post_runs
from tests.diagnostics.alerting.notifications.building import (
    VERDICT,
    happen,
    make_channel,
    make_incident,
    make_rule,
)
from tests.diagnostics.builders import make_event

pytestmark = pytest.mark.django_db
Role = Membership.Role


@pytest.fixture
def ann(project: Project, client: Client) -> User:
    user = make_member(project)
    client.force_login(user)
    return user


def test_open_ones_come_first_and_the_rest_with_its_noise(
    project: Project, ann: User, client: Client
) -> None:
    over = make_incident(project, "gpt-5")
    happen(over, "cleared")
    Incident.objects.filter(pk=over.pk).update(resolution_cause="false_alarm")
    make_incident(project, "claude-haiku")
    assert "judged alarms" not in client.get("/incidents/").text, "1 of 1 says nothing"
    for _ in range(19):
        happen(make_incident(project, "gpt-5"), "cleared")
    Incident.objects.filter(state="resolved").update(resolution_cause="false_alarm")
    page = client.get("/incidents/").content.decode()
    assert page.index("anthropic/claude-haiku") < page.index("anthropic/gpt-5")
    assert "20 of 20 judged alarms were false" in page
    narrowed = client.get("/incidents/?model=gpt-5").content.decode()
    assert "anthropic/gpt-5" in narrowed
    assert "anthropic/claude-haiku<" not in narrowed


def test_more_open_incidents_than_are_shown_are_not_said_to_be_all(
    project: Project, ann: User, client: Client
) -> None:
    happen(make_incident(project, "gpt-5"), "cleared")
    for _ in range(40):
        make_incident(project, "claude-haiku")
    page = client.get("/incidents/").text
    assert ">40 open" in page
    assert "<span>all open" in page
    assert "No resolved incidents" not in page
    make_incident(project, "claude-haiku")
    page = client.get("/incidents/").text
    assert "more than 40 open" in page
    assert "<span>all open" not in page


def test_an_incident_of_a_whole_provider_overlaps_a_model_and_the_page_says_so(
    project: Project, ann: User, client: Client
) -> None:
    whole = make_incident(project, "claude-haiku")
    whole.slices.update(slice={"provider": "anthropic"})
    Incident.objects.filter(pk=whole.pk).update(title="anthropic")
    make_incident(project, "gpt-5")
    words = "Incidents that overlap the filter"
    page = client.get("/incidents/?model=claude-haiku").content.decode()
    assert f"#{whole.pk} anthropic<" in page
    assert "anthropic/gpt-5" not in page
    assert words in page
    assert words not in client.get("/incidents/").content.decode()
    assert f"#{whole.pk} " not in client.get("/incidents/?provider=openai").content.decode()


def test_the_export_of_incidents_takes_what_the_page_applies(
    project: Project, ann: User, client: Client
) -> None:
    # One of before the range that is open yet, and one that is over.
    long_ago = clock.now() - timedelta(days=9)
    make_incident(project, "gpt-5", fired_at=long_ago)
    make_incident(
        project, "gpt-5", fired_at=long_ago, title="over", state="resolved", cleared_at=clock.now()
    )
    make_incident(project, "claude-haiku")
    query = "?model=gpt-5&kind=truncated&attempt=2&q=-env:dev+pointer:/tool+refund&range=7d"
    page = client.get(f"/incidents/{query}").content.decode()
    (address,) = (
        unescape(one) for one in re.findall(r'href="(/export/incidents\.csv[^"]*)"', page)
    )
    answer = client.get(address)
    assert answer.status_code == 200
    rows = list(csv.DictReader(answer.getvalue().decode().splitlines()))
    assert [row["title"] for row in rows] == ["anthropic/gpt-5"]
    assert "model=gpt-5" in address
    assert "env%3Adev" in address


def test_an_empty_list_says_what_would_fill_it(ann: User, client: Client) -> None:
    page = client.get("/incidents/").content.decode()
    assert "No resolved incidents in the last 24 h" in page


def test_links_from_what_is_over_lead_to_its_time(
    project: Project, ann: User, client: Client
) -> None:
    incident = make_incident(project, now=clock.now() - timedelta(days=5))
    path = f"/incidents/{incident.pk}/"
    assert 'href="/failures/?provider=anthropic"' in client.get(path).content.decode()
    incident.state, incident.cleared_at = "resolved", incident.fired_at + timedelta(hours=1)
    incident.save()
    page = client.get(path).content.decode()
    query = re.findall(r'href="/(?:failures/)?(\?provider=[^"]*)"', page)
    assert len(query) == 4
    for one in query:
        shown = client.get(f"/failures/{unescape(one)}").context["selection"]
        assert shown.begin <= incident.onset
        assert shown.end == incident.cleared_at


def test_one_incident_tells_its_story(project: Project, ann: User, client: Client) -> None:
    make_channel(project, name="on call")
    incident = make_incident(project)
    happen(incident)
    page = client.get(f"/incidents/{incident.pk}/").content.decode()
    for words in (
        'Degrading since <time datetime="2026-11-22T14:32',
        "Onset",
        "Fired: on call, waiting",
        "Raise max_output_tokens",
        "128 of 412",
        "95 % interval 26.7",
        "/?provider=anthropic&amp;model=claude-haiku",
    ):
        assert words in page, words


def test_counts_of_a_recovered_series_are_said_to_be_of_its_fire(
    project: Project, ann: User, client: Client
) -> None:
    incident = make_incident(project)
    path = f"/incidents/{incident.pk}/"
    assert "at fire" not in client.get(path).content.decode()
    IncidentSlice.objects.update(cleared_at=clock.now())
    assert "<small>at fire</small>" in client.get(path).content.decode()


def test_an_operator_acknowledges_assigns_notes_links_silences_and_resolves(
    project: Project, ann: User, client: Client
) -> None:
    incident = make_incident(project)
    happen(incident)
    path = f"/incidents/{incident.pk}"
    client.post(f"{path}/acknowledge/")
    client.post(f"{path}/assign/", {"assignee": ann.pk})
    client.post(f"{path}/comment/", {"text": "They roll out a new version."})
    client.post(f"{path}/link/", {"url": "https://tracker.example.org/4711"})
    client.post(f"{path}/silence/", {"hours": "4", "reason": "known"})
    client.post(f"{path}/resolve/", {"cause": "provider"})
    incident.refresh_from_db()
    assert incident.state == "resolved"
    assert (incident.acknowledged_by, incident.assignee) == (ann, ann)
    assert incident.tracker_url == "https://tracker.example.org/4711"
    assert incident.resolution_cause == "provider"
    assert Silence.objects.get().reason == "known"
    page = client.get(f"{path}/").content.decode()
    assert "They roll out a new version." in page
    actions = set(AuditEntry.objects.values_list("action", flat=True))
    assert {"incident.acknowledged", "incident.resolved", "silence.created"} <= actions


@pytest.mark.parametrize(
    ("action", "given", "says"),
    [
        ("resolve", {"cause": "weather"}, "Choose a cause"),
        ("link", {"url": "javascript:alert(1)"}, "http:// or https://"),
        ("assign", {"assignee": "99999"}, "a member of this project"),
        ("silence", {"hours": "9999"}, "up to 72 hours"),
        ("comment", {"text": "  "}, "was empty"),
    ],
)
def test_what_cannot_be_is_refused_in_words(
    project: Project, ann: User, client: Client, action: str, given: dict[str, str], says: str
) -> None:
    incident = make_incident(project)
    answer = client.post(f"/incidents/{incident.pk}/{action}/", given, follow=True)
    assert says in answer.content.decode()
    incident.refresh_from_db()
    assert (incident.state, incident.tracker_url) == ("open", "")


ACTIONS = ("acknowledge", "resolve", "comment", "assign", "link", "silence")


def test_viewers_look_only_and_others_find_nothing(project: Project, client: Client) -> None:
    incident = make_incident(project)
    client.force_login(make_member(project, "vic", Role.VIEWER))
    page = client.get(f"/incidents/{incident.pk}/").content.decode()
    assert "Acknowledge</button>" not in page
    codes = {client.post(f"/incidents/{incident.pk}/{a}/").status_code for a in ACTIONS}
    assert codes == {403}
    other = Project.objects.create(slug="p2", name="P2")
    client.force_login(make_member(other, "eve", Role.ADMIN))
    assert client.get(f"/incidents/{incident.pk}/").status_code == 404
    codes = {client.post(f"/incidents/{incident.pk}/{a}/").status_code for a in ACTIONS}
    assert codes == {404}


def test_hostile_words_stay_words(project: Project, ann: User, client: Client) -> None:
    words = "<script>alert(1)</script>"
    incident = make_incident(project, words, title=words, verdict={"sentence": words})
    for path in ("/incidents/", f"/incidents/{incident.pk}/"):
        assert words not in client.get(path).content.decode()


def test_a_verdict_that_was_kept_as_text_is_shown_whole(
    project: Project, ann: User, client: Client
) -> None:
    text = "Degrading since 14:32: x/y, 3.1 % of 412 runs. Looks like our prompt."
    incident = make_incident(project, verdict={"sentence": text})
    for path in ("/incidents/", f"/incidents/{incident.pk}/"):
        assert text.rstrip(".") in client.get(path).content.decode()


def test_the_number_of_queries_does_not_grow(
    project: Project,
    ann: User,
    client: Client,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    make_channel(project)
    for number in range(8):
        happen(make_incident(project, f"m-{number}"))
    with django_assert_max_num_queries(12):
        client.get("/incidents/")
    with django_assert_max_num_queries(27):
        client.get(f"/incidents/{Incident.objects.latest('pk').pk}/")


@pytest.mark.slow
def test_pages_stay_light_whatever_has_happened(
    project: Project, ann: User, client: Client
) -> None:
    make_channel(project, digest_above=1000)
    rule = make_rule(project)
    for number in range(70):
        happen(make_incident(project, f"m-{number}", rule=rule))
    first = Incident.objects.earliest("pk")
    IncidentSlice.objects.update(incident=first)
    for number in range(60):
        state = AlertState.objects.order_by("pk")[number]
        Evaluation.objects.bulk_create(
            Evaluation(
                state=state,
                slot=first.fired_at - timedelta(minutes=minute),
                k=1,
                n=30,
                value=0.3,
                bound=0.1,
                rule_version=1,
                verdict=("quiet", "fires")[minute % 2],
                state_after="ok",
            )
            for minute in range(1, 60)
        )
    for path in ("/incidents/", f"/incidents/{first.pk}/"):
        page = client.get(path).content.decode()
        assert len(page.encode()) < 60 * 1024, path
        assert page.count("<") - page.count("</") < 1_500, path


def test_the_evidence_of_an_incident_is_a_text_to_copy(
    project: Project, ann: User, client: Client
) -> None:
    incident = make_incident(project)
    address = f"/incidents/{incident.pk}/task/"
    assert (
        f'href="{address}" data-copy-from'
        in client.get(f"/incidents/{incident.pk}/").content.decode()
    )
    text = client.get(address, headers={"Accept": "text/plain"})
    assert text["Content-Type"] == "text/plain; charset=utf-8"
    assert text.content.decode().startswith("> Code spans and blocks")
    assert f"/incidents/{incident.pk}/" in text.content.decode()
    # Without a script the same text stands on a page.
    assert "<pre" in client.get(address).content.decode()
    other = make_incident(Project.objects.create(slug="p2", name="P2"))
    assert client.get(f"/incidents/{other.pk}/task/").status_code == 404


def test_a_resolved_incident_speaks_in_the_past_and_says_who_ended_it(
    project: Project, ann: User, client: Client
) -> None:
    incident = make_incident(project)
    happen(incident)
    calm = {
        "state": "ok",
        "told": {"lead": "The model is within baseline", "rest": ".", "since": None},
    }
    Incident.objects.filter(pk=incident.pk).update(verdict_now=calm)
    client.post(f"/incidents/{incident.pk}/resolve/", {"cause": "provider"})
    page = client.get(f"/incidents/{incident.pk}/").content.decode()
    listed = client.get("/incidents/").content.decode()
    for text in (page, listed):
        assert 'Degraded from <time datetime="2026-11-22T14:32' in text
        assert "within baseline" not in text
    headline = page.split("<h1>")[1].split("</h1>")[0]
    assert "Degrading since" not in headline
    assert "Looked like the model or provider" in page
    assert "Resolved by ann after" in page


def test_an_incident_that_its_detector_ended_was_resolved_automatically(
    project: Project, ann: User, client: Client
) -> None:
    incident = make_incident(project)
    happen(incident, "cleared")
    assert (
        "Resolved automatically after" in client.get(f"/incidents/{incident.pk}/").content.decode()
    )
    Incident.objects.filter(pk=incident.pk).update(resolution_cause="new_usual_level")
    page = client.get(f"/incidents/{incident.pk}/").content.decode()
    assert "this level is the new baseline" in page


def test_the_end_of_a_silence_in_the_timeline_is_a_time_that_the_page_can_put_into_a_zone(
    project: Project, ann: User, client: Client
) -> None:
    incident = make_incident(project)
    client.post(f"/incidents/{incident.pk}/silence/", {"hours": "1"})
    end = Silence.objects.get().ends_at
    page = client.get(f"/incidents/{incident.pk}/").content.decode()
    assert f'until <time datetime="{end:%Y-%m-%dT%H:%M}' in page
    assert f"until {end:%Y-%m-%d %H:%M} UTC" not in page


def test_the_curve_of_an_incident_has_its_baseline_onset_and_what_happened(
    project: Project, ann: User, client: Client
) -> None:
    now = clock.now()
    post_runs(
        project, 20, 10, now - timedelta(minutes=15), provider="anthropic", model="claude-haiku"
    )
    post_runs(project, 50, 0, now - timedelta(minutes=15), provider="anthropic", model="other")
    incident = make_incident(project)
    verdict = {**VERDICT, "since": (now - timedelta(minutes=30)).isoformat()}
    Incident.objects.filter(pk=incident.pk).update(verdict_now=verdict)
    client.post(f"/incidents/{incident.pk}/acknowledge/")
    page = client.get(f"/incidents/{incident.pk}/").content.decode()
    assert "Failure rate of runs: highest 33.3\u202f% of 30 runs" in page
    assert "baseline 4.0\u202f%" in page
    assert 'class="onset"' in page
    marks = page.split('aria-label="Marks"')[1].split("</ol>")[0]
    assert "fired" in marks
    assert "acknowledged ann" in marks


def test_the_curve_of_a_young_incident_shows_its_step(project: Project, ann: User) -> None:
    now = floor(clock.now(), timedelta(minutes=1))
    begun = now - timedelta(minutes=13)
    for ago in range(43):
        bad = 3 if ago < 13 else 0
        at = now - timedelta(minutes=ago, seconds=30)
        post_runs(project, 6 - bad, bad, at, provider="anthropic", model="claude-haiku")
    verdict = {**VERDICT, "since": begun.isoformat()}
    drawing = draw_series(incident_chart(make_incident(project, verdict=verdict), now), UTC)
    shares = [point.share for point in drawing.points if point.high is not None]
    assert shares[0] == 0
    assert 0.5 in shares


def test_an_incident_that_ended_before_its_onset_is_drawn(project: Project, ann: User) -> None:
    # As after a clock that was set back.
    incident = make_incident(project)
    incident.cleared_at = incident.began - timedelta(days=3)
    assert incident_chart(incident, clock.now()).slots


def test_the_curve_of_slow_traffic_reaches_back_until_it_shows_the_step(
    project: Project, ann: User
) -> None:
    now = floor(clock.now(), timedelta(hours=1))
    begun = now - timedelta(hours=6)
    for ago in range(23):
        bad = 6 if ago < 6 else 0
        at = now - timedelta(hours=ago, minutes=10)
        post_runs(project, 12 - bad, bad, at, provider="anthropic", model="claude-haiku")
    fold()
    verdict = {**VERDICT, "since": begun.isoformat()}
    incident = make_incident(project, verdict=verdict, onset=begun)
    small = small_charts(project.pk, [incident], now)[incident.pk]
    for chart in (small, incident_chart(incident, now)):
        shares = [point.share for point in draw_series(chart, UTC).points if point.high is not None]
        assert shares[0] == 0
        assert shares[-1] == 0.5


def test_a_verdict_of_an_incident_is_rated(project: Project, ann: User, client: Client) -> None:
    since = clock.now() - timedelta(hours=1)
    verdict = {**VERDICT, "since": since.isoformat(), "cause": "model", "cause_value": "a/b"}
    incident = make_incident(project, verdict=verdict)
    path = f"/incidents/{incident.pk}/"
    shown = dict(re.findall(r'name="(verdict)" value="([^"]+)"', client.get(path).content.decode()))
    # Another cause is named since the page was opened.
    incident.verdict_now = {**verdict, "cause_value": "c/d"}
    incident.save()
    client.post(f"{path}rate/", {"said": "wrong", **shown})
    mark = VerdictMark.objects.get(project=project)
    assert (mark.is_right, mark.cause, mark.cause_value, mark.since) == (
        False,
        "model",
        "a/b",
        since,
    )
    assert "✓ No" not in client.get(path).content.decode()
    incident.verdict_now = verdict
    incident.save()
    assert "✓ No" in client.get(path).content.decode()
    outdated = client.post(f"{path}rate/", {"said": "right"}, follow=True)
    assert "the page was out of date" in outdated.content.decode()


def test_an_incident_shows_the_failures_that_rose_with_a_sample_each(
    project: Project, ann: User, client: Client
) -> None:
    now = clock.now()
    fields = {"provider": "anthropic", "model": "claude-haiku", "parse_error_type": "truncated"}
    record(
        project.pk,
        [
            make_event(occurred_at=(now - timedelta(minutes=5, seconds=n)).isoformat(), **fields)
            for n in range(20)
        ],
    )
    fold()
    incident = make_incident(project)
    page = client.get(f"/incidents/{incident.pk}/").content.decode()
    shown = page.split('id="failures-heading"')[1].split("</section>")[0]
    assert '<span class="num">20</span>' in shown
    assert re.search(r'/failures/\d+/\?provider=anthropic"', shown)
    assert "not json" in shown


def test_colours_follow_the_state_and_the_severity_is_a_word(
    project: Project, ann: User, client: Client
) -> None:
    incident = make_incident(project, rule=make_rule(project, severity="warning"))
    states = [("open", "bad"), ("acknowledged", "warn")]
    for state, tone in states:
        Incident.objects.filter(pk=incident.pk).update(state=state)
        page = client.get(f"/incidents/{incident.pk}/").content.decode()
        assert f'<section class="verdict is-{tone}"' in page
        assert '<span class="tag warning">warning</span>' in page
        assert f'class="cause is-{tone}"' in client.get("/").content.decode()
    happen(incident, "cleared")
    assert 'class="verdict is-good"' in client.get(f"/incidents/{incident.pk}/").content.decode()


def act(client: Client, verb: str, *ids: int, **fields: object) -> str:
    told = {"verb": verb, "id": ids, "next": "/incidents/?range=7d", **fields}
    answer = client.post("/incidents/act/", told)
    assert answer.headers["Location"] == "/incidents/?range=7d"
    return client.get("/incidents/").text


def test_many_incidents_are_acknowledged_at_once(
    project: Project, ann: User, client: Client
) -> None:
    rows = [make_incident(project, name) for name in ("a", "b", "c")]
    page = client.get("/incidents/").text
    assert page.count('name="id"') == 3
    assert "2 incidents acknowledged" in act(client, "acknowledge", rows[0].pk, rows[1].pk)
    states = Incident.objects.order_by("pk").values_list("state", flat=True)
    assert list(states) == ["acknowledged", "acknowledged", "open"]
    assert "Already acknowledged" in act(client, "acknowledge", rows[0].pk)
    assert AuditEntry.objects.filter(action="incident.acknowledged").count() == 2


def test_many_incidents_are_silenced_at_once_for_a_time_from_the_list(
    project: Project, ann: User, client: Client
) -> None:
    rows = [make_incident(project, name) for name in ("a", "b")]
    ids = [row.pk for row in rows]
    assert "Choose up to 72 hours" in act(client, "silence", *ids, hours="999")
    assert "Silenced for 4 hours" in act(client, "silence", *ids, hours="4")
    silences = Silence.objects.filter(project=project)
    assert {one.filter for one in silences} == {row.filter for row in rows}
    assert all(timedelta(hours=3.9) < one.ends_at - clock.now() for one in silences)


def test_nothing_chosen_resolved_foreign_and_unknown_change_nothing(
    project: Project, ann: User, client: Client
) -> None:
    over = make_incident(project, "a")
    happen(over, "cleared")
    other = make_incident(Project.objects.create(slug="p2", name="P2"), "b")
    words = "Select at least one open incident"
    for ids in ((), (over.pk,), (other.pk,)):
        assert words in act(client, "acknowledge", *ids)
    mine = make_incident(project, "c")
    assert words in act(client, "delete", mine.pk)
    assert Incident.objects.get(pk=other.pk).state == "open"
    answer = client.post("/incidents/act/", {"id": "x", "next": "https://evil.example/"})
    assert answer.headers["Location"] == "/incidents/"


def test_who_may_only_look_gets_no_boxes(project: Project, client: Client) -> None:
    client.force_login(make_member(project, "eve", Role.VIEWER))
    row = make_incident(project, "a")
    assert 'name="id"' not in client.get("/incidents/").text
    told = {"verb": "acknowledge", "id": row.pk}
    assert client.post("/incidents/act/", told).status_code == 403

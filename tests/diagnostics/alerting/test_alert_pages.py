"""Pages of alert rules, silences and channels: looking, changing, and who may."""

import base64
import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils.html import escape
from pytest_django import DjangoAssertNumQueries

from diagnostics import clock
from diagnostics.accounts.models import AuditEntry, Membership, Project
from diagnostics.alerting.channels import secrets_of, target_of
from diagnostics.alerting.forms import RuleForm, initial_of
from diagnostics.alerting.incident_actions import archive_rule
from diagnostics.alerting.incident_models import Incident
from diagnostics.alerting.incident_records import totals_by_rule
from diagnostics.alerting.notification_models import Channel, Notification
from diagnostics.alerting.rule_models import (
    AlertRule,
    AlertState,
    Evaluation,
    RuleDay,
    Silence,
    live_rules,
)
from diagnostics.alerting.rule_rows import RuleError, change_rule
from diagnostics.alerting.saved_states import ensure_standard_rules
from diagnostics.store import aggregation
from diagnostics.store.windows import floor
from tests.console import make_member, post_runs
from tests.diagnostics.alert_calls import count_calls
from tests.diagnostics.alerting.notifications.building import (
    happen,
    make_channel,
    make_incident,
    make_rule,
)

pytestmark = pytest.mark.django_db
Role = Membership.Role
RULE = {
    "name": "Too slow",
    "filter": "provider=acme",
    "group_by": ["model"],
    "signal": "latency_p95",
    "detector": "threshold",
    "limit": "20000",
    "severity": "critical",
    "for_minutes": "5",
    "clear_minutes": "0",
    "no_data": "clear",
    "save": "1",
}
CHANNEL = {
    "name": "on call",
    "kind": "email",
    "email": "ann@example.org, bob@example.org",
    "min_severity": "warning",
    "zone": "UTC",
    "digest_above": "10",
}


@pytest.fixture
def project(client: Client) -> Project:
    made = Project.objects.create(slug="p1", name="P1")
    client.force_login(make_member(made, role=Role.ADMIN))
    return made


def test_s0_58_rules_out_of_the_box_are_shown_and_explained(
    project: Project, client: Client
) -> None:
    ensure_standard_rules()
    page = client.get("/alerts/rules/").content.decode()
    assert "Failure rate above baseline" in page
    # Nothing was evaluated: a rule without a series is not ok.
    assert re.search(r"no data\s*</", page)
    assert not re.search(r">\s*ok\s*</", page)
    assert "Built-in: fires when the signal is significantly worse than its baseline" in page
    rule = AlertRule.objects.get(standard="change")
    sent = dict(
        re.findall(rf'name="(enabled)" value="([^"]*)" aria-label="Disable {rule.name}', page)
    )
    # The second press is of a page that is out of date.
    for _ in range(2):
        client.post(f"/alerts/rules/{rule.pk}/switch/", sent)
        rule.refresh_from_db()
        assert not rule.is_enabled


def test_a_built_in_rule_is_deleted_for_good(project: Project, client: Client) -> None:
    ensure_standard_rules()
    rule = AlertRule.objects.get(standard="change")
    page = f"/alerts/rules/{rule.pk}/"
    assert "does not come back" in client.get(page).content.decode()
    assert client.post(f"{page}delete/").status_code == 302
    ensure_standard_rules()
    assert client.get(page).status_code == 404
    assert not AlertRule.objects.filter(archived_at=None).exists()


def test_the_page_of_a_rule_tells_its_last_90_days(project: Project, client: Client) -> None:
    rule = make_rule(project)
    RuleDay.objects.create(rule=rule, day=clock.now().date(), evaluations=4321)
    incident = make_incident(project, rule=rule)
    incident.resolution_cause = Incident.Cause.FALSE_ALARM
    incident.save()
    page = client.get(f"/alerts/rules/{rule.pk}/").content.decode()
    assert (
        "<dt>Evaluations</dt><dd>4,321</dd><dt>Firing now</dt><dd>1</dd><dt>Fires</dt><dd>1</dd>"
        in page
    )
    assert "<dd>1 of 1 judged</dd>" in page
    assert "1 of 1 judged in 90 days" in client.get("/alerts/rules/").content.decode()
    assert "Last 90 days" not in client.get("/alerts/rules/new/").content.decode()


def test_the_last_looks_are_a_strip_with_words(project: Project, client: Client) -> None:
    rule = make_rule(project)
    make_incident(project, rule=rule)
    state, now = AlertState.objects.get(), clock.now().replace(second=0, microsecond=0)
    for minute in range(70):
        fires = minute < 10
        Evaluation.objects.create(
            state=state,
            slot=now - timedelta(minutes=minute),
            k=9,
            n=30,
            value=0.3,
            bound=0.1,
            rule_version=1,
            verdict="fires" if fires else "quiet",
            state_after="firing" if fires else "ok",
        )
    page = client.get("/alerts/rules/").content.decode()
    assert "last 60 evaluations: ok 50 times" in page
    assert "1 of 1 series firing 10 times" in page


def test_a_rule_is_made_in_percent_and_minutes_and_changed(
    project: Project, client: Client
) -> None:
    assert client.post("/alerts/rules/new/", RULE).status_code == 302
    row = AlertRule.objects.get(name="Too slow")
    assert row.parameters == {"limit": 20000.0}
    assert (row.for_seconds, row.severity, row.group_by) == (300, "critical", ["model"])
    page = client.get(f"/alerts/rules/{row.pk}/").content.decode()
    assert 'value="20000' in page
    changed = {**RULE, "signal": "degraded_ratio", "limit": "7.5"}
    client.post(f"/alerts/rules/{row.pk}/", changed)
    row.refresh_from_db()
    assert (row.parameters, row.version) == ({"limit": 0.075}, 2)
    client.post(f"/alerts/rules/{row.pk}/delete/")
    row.refresh_from_db()
    assert row.archived_at is not None


@pytest.mark.parametrize("seconds", [0, 30, 90, 100, 3600, 604_799])
def test_untouched_boxes_keep_the_seconds_of_a_rule(project: Project, seconds: int) -> None:
    waits = ("for_seconds", "clear_seconds", "renotify_seconds", "escalate_seconds")
    row = AlertRule(project=project, name="x", signal="degraded_count", detector="count")
    for name in waits:
        setattr(row, name, seconds)
    form = RuleForm(project.pk, {k: v for k, v in initial_of(row).items() if v is not None})
    assert form.is_valid(), form.errors
    given = form.given()
    assert {name: given[name] for name in waits} == dict.fromkeys(waits, seconds)


def test_a_rule_says_which_of_its_channels_is_disabled(project: Project, client: Client) -> None:
    Channel.objects.create(project=project, name="ops", kind="email", enabled=False)
    Channel.objects.create(project=project, name="dev", kind="email")
    page = client.get("/alerts/rules/new/").content.decode()
    assert "ops (disabled)" in page
    assert "dev (disabled)" not in page


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"detector": "absent"}, "works with threshold"),
        ({"limit": "-1"}, "Above 0 and below 3,600,000."),
        ({"detector": "count", "signal": "new_group", "minutes": "0.5"}, "From 1 to 360 min."),
        ({"name": " "}, "This field is required"),
        (
            {"filter": "kind=truncated"},
            "Only environment, node, provider, model and prompt_version can be used here",
        ),
        ({"filter": "modle=m-1"}, "refused: modle"),
    ],
)
def test_a_wrong_rule_is_refused_at_its_box(
    project: Project, client: Client, change: dict[str, str], says: str
) -> None:
    page = client.post("/alerts/rules/new/", {**RULE, **change}).content.decode()
    assert says in page
    assert not AlertRule.objects.exists()


def test_a_new_rule_for_a_filter_is_tried_on_the_last_30_days(
    project: Project, client: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    now = clock.now()
    for hour in range(1, 30):
        bad = 15 if 5 <= hour < 9 else 0
        at = now - timedelta(hours=hour)
        post_runs(project, 30 - bad, bad, at, provider="acme", model="m-1")
    aggregation.fold()
    query = "model=m-1&signal=degraded_count&detector=count"
    with django_assert_max_num_queries(10):
        page = client.get(f"/alerts/rules/new/?{query}").content.decode()
    assert "Would have fired" not in page
    test_at = f"/alerts/rules/new/test/?{query}"
    assert f'hx-get="{escape(test_at)}"' in page
    with django_assert_max_num_queries(14):
        found = client.get(test_at, headers={"HX-Request": "true"}).content.decode()
    assert "Would have fired 1 time" in found
    assert "acme/m-1" in found
    assert "<form" not in found


def test_a_rule_that_would_fire_most_of_the_time_is_saved_only_when_that_was_said(
    project: Project, client: Client
) -> None:
    begin = floor(clock.now(), timedelta(hours=1)) - timedelta(days=4)
    count_calls(project, begin, [0.3] * 96, 60, "m-1", timedelta(hours=1))
    given = {**RULE, "signal": "call_failure_ratio", "limit": "10", "for_minutes": "0"}
    page = client.post("/alerts/rules/new/", given).content.decode()
    assert "Would have been firing most of the time" in page
    assert "Save anyway" in page
    assert not AlertRule.objects.exists()
    assert client.post("/alerts/rules/new/", {**given, "anyway": "1"}).status_code == 302
    row = AlertRule.objects.get()
    # What it judges stays: nothing has to be said again.
    again = client.post(f"/alerts/rules/{row.pk}/", {**given, "name": "Another name"})
    assert again.status_code == 302


def test_without_javascript_a_button_asks_for_the_back_test(
    project: Project, client: Client
) -> None:
    row = make_rule(project)
    page = client.get(f"/alerts/rules/{row.pk}/").content.decode()
    assert 'name="test" value="1">Back-test' in page
    page = client.get(f"/alerts/rules/{row.pk}/?test=1").content.decode()
    assert "No data to back-test" in page
    answer = client.get(f"/alerts/rules/{row.pk}/test/")
    assert answer["Location"] == f"/alerts/rules/{row.pk}/?test=1"


def test_what_a_rule_cannot_watch_by_is_said(project: Project, client: Client) -> None:
    page = client.get("/alerts/rules/new/?release=v7").content.decode()
    assert "Not part of the scope: release:=v7" in page
    page = client.get("/alerts/rules/new/?prompt_version=v7").content.decode()
    assert '<option value="v7" selected>' in page
    assert "Not part of the scope" not in page
    page = client.get("/alerts/rules/new/?prompt_version=v7&detector=change").content.decode()
    assert "Not part of the scope: prompt:=v7" in page


def test_a_prompt_version_is_picked_for_a_threshold_and_refused_for_change(
    project: Project, client: Client
) -> None:
    picked = {**RULE, "filter": "", "prompt_version": "v7"}
    page = client.post("/alerts/rules/new/", {**picked, "detector": "change"}).content.decode()
    assert "only threshold and count can be narrowed to a prompt version" in page
    assert not AlertRule.objects.exists()
    client.post("/alerts/rules/new/", {**picked, "detector": "threshold"})
    row = AlertRule.objects.get()
    assert row.filter == "prompt_version=v7"
    page = client.get(f"/alerts/rules/{row.pk}/").content.decode()
    assert '<option value="v7" selected>' in page
    assert '<span class="tag">prompt:=v7</span>' in page


def test_the_scope_of_a_rule_is_picked_exactly_and_shown(project: Project, client: Client) -> None:
    picked = {**RULE, "filter": "-env:dev", "provider": "openai", "model": "gpt-4.1"}
    client.post("/alerts/rules/new/", picked)
    row = AlertRule.objects.get()
    assert row.filter == "provider=openai&model=gpt-4.1&q=-env%3Adev"
    page = client.get(f"/alerts/rules/{row.pk}/").content.decode()
    assert '<option value="gpt-4.1" selected>' in page
    assert '<span class="tag">model:=gpt-4.1</span>' in page
    twice = client.post("/alerts/rules/new/", {**picked, "filter": "model=gpt-4.1-mini"})
    assert "Model is set twice" in twice.content.decode()


@pytest.mark.parametrize(
    ("address", "given", "says"),
    [
        ("/alerts/rules/new/", {**RULE, "filter": ""}, "<b>all models</b>"),
        ("/alerts/silences/new/", {"hours": "4"}, "<b>all calls</b>"),
    ],
)
def test_what_covers_everything_says_so_before_it_is_saved(
    project: Project, client: Client, address: str, given: dict[str, str], says: str
) -> None:
    page = client.post(address, given).content.decode()
    assert says in page
    assert not AlertRule.objects.exists()
    assert not Silence.objects.exists()
    assert client.post(address, {**given, "covers_all": "1"}).status_code == 302
    assert AlertRule.objects.exists() or Silence.objects.get().reason == ""


def test_a_new_rule_begins_with_a_threshold(project: Project, client: Client) -> None:
    page = client.get("/alerts/rules/new/?model=m-1").content.decode()
    assert '<option value="threshold" selected>' in page
    # An empty limit is that of the signal: a latency never begins with 5 ms.
    assert 'name="limit" min="0"' in page
    assert 'placeholder="above 10\u202f%"' in page
    slow = client.get("/alerts/rules/new/?signal=latency_p95").content.decode()
    assert 'placeholder="above 30,000\u202fms"' in slow or 'placeholder="above 30,000 ms"' in slow
    assert "Change detection already watches every series" in page


def test_a_rule_names_its_owner_and_when_it_fired(project: Project, client: Client) -> None:
    client.post("/alerts/rules/new/", RULE)
    rule = AlertRule.objects.get()
    incident = make_incident(project, rule=rule)
    page = client.get("/alerts/rules/").content.decode()
    assert '<td data-label="owner">ann</td>' in page
    assert f"{incident.fired_at:%-d %b %H:%M} UTC</time>" in page
    assert "p95 latency above 20,000 ms" in page


def test_a_rule_that_fires_by_stored_data_has_fired(project: Project, client: Client) -> None:
    incident = make_incident(project, is_backfilled=True)
    (rule,) = AlertRule.objects.all()
    page = client.get("/alerts/rules/").content.decode()
    last = re.search(r'data-label="last fired">(.*?)</td>', page)
    assert last is not None
    assert f"{incident.fired_at:%H:%M} UTC" in last[1]
    totals = totals_by_rule(project.pk, clock.now())[rule.pk]
    assert (totals.fires, totals.judged_fires) == (1, 0)


def test_each_kind_of_channel_has_an_address_of_its_own(project: Project, client: Client) -> None:
    page = client.get("/alerts/channels/new/").content.decode()
    for label in ("Email addresses", "Webhook URL", "Service URL"):
        assert label in page
    assert "---------" not in page
    row = make_channel(project)
    page = client.get(f"/alerts/channels/{row.pk}/").content.decode()
    assert page.count('class="of-kind') == 1


def test_a_channel_is_made_tested_switched_and_deleted(project: Project, client: Client) -> None:
    client.post("/alerts/channels/new/", CHANNEL)
    row = Channel.objects.get()
    assert row.shown == "ann@example.org, bob@example.org"
    client.post(f"/alerts/channels/{row.pk}/test/")
    page = client.get(f"/alerts/channels/{row.pk}/").content.decode()
    assert "queued" in page
    assert Notification.objects.get().reason == "test"
    sent = dict(re.findall(r'name="(enabled)" value="([^"]*)">Disable<', page))
    for _ in range(2):
        client.post(f"/alerts/channels/{row.pk}/switch/", sent)
        row.refresh_from_db()
        assert not row.enabled
    client.post(f"/alerts/channels/{row.pk}/delete/")
    assert not Channel.objects.exists()
    actions = list(AuditEntry.objects.order_by("number").values_list("action", flat=True))
    assert actions == [
        *("channel.created", "channel.tested", "channel.disabled", "channel.disabled"),
        "channel.deleted",
    ]


def test_a_digest_is_sent_again_while_the_next_one_collects(
    project: Project, client: Client
) -> None:
    make_channel(project, digest_above=0)
    happen(make_incident(project))
    digest = Notification.objects.get(reason="digest")
    Notification.objects.filter(pk=digest.pk).update(state="failed", tries=6)
    (later,) = happen(make_incident(project, "other"))
    client.post(f"/alerts/notifications/{digest.pk}/again/")
    queued = Notification.objects.filter(reason="digest", state="queued")
    assert {row.pk for row in queued} == {digest.pk, later.digest_id}


def test_the_secret_of_a_webhook_is_shown_once_and_rotated(
    project: Project, client: Client
) -> None:
    hook = {**CHANNEL, "kind": "webhook", "webhook": "https://hooks.example.org/T1/secret"}
    page = client.post("/alerts/channels/new/", hook).content.decode()
    assert "whsec_" in page
    row = Channel.objects.get()
    again = client.get(f"/alerts/channels/{row.pk}/").content.decode()
    assert "whsec_" not in again
    assert "T1/secret" not in again
    sent = dict(re.findall(r'name="(rotated)" value="([^"]*)"', again))
    page = client.post(f"/alerts/channels/{row.pk}/rotate/", sent).content.decode()
    assert "stays valid for 24 hours" in page
    row.refresh_from_db()
    assert row.rotated_at
    # A reload sends it again: the secret before would be one that no receiver ever had.
    page = client.post(f"/alerts/channels/{row.pk}/rotate/", sent, follow=True).content.decode()
    assert "Not replaced again" in page
    assert Channel.objects.get().sealed == row.sealed
    assert f'name="rotated" value="{int(row.rotated_at.timestamp())}"' in page


def test_no_secret_replaces_an_address_that_another_key_sealed(
    project: Project, client: Client, settings: Any
) -> None:
    make_channel(project, "webhook", "https://hooks.example.org/T1")
    stored = Channel.objects.get()
    settings.FAILSOFT_WORKING_KEY = base64.b64encode(bytes(range(32))).decode()
    page = client.post(f"/alerts/channels/{stored.pk}/rotate/", follow=True).text
    assert "Enter the address again" in page
    assert "whsec_" not in page
    assert Channel.objects.get().sealed == stored.sealed


@pytest.mark.parametrize("address", ["https://hooks.example.org/T2", "env:HOOK"])
def test_a_webhook_whose_secret_another_key_sealed_gets_one_with_its_address(
    project: Project, client: Client, settings: Any, monkeypatch: pytest.MonkeyPatch, address: str
) -> None:
    monkeypatch.setenv("HOOK", address)
    row = make_channel(project, "webhook", "https://hooks.example.org/T1")
    settings.FAILSOFT_WORKING_KEY = base64.b64encode(bytes(range(32))).decode()
    form = {**CHANNEL, "kind": "webhook", "webhook": address}
    page = client.post(f"/alerts/channels/{row.pk}/", form).text
    row = Channel.objects.get()
    (secret,) = secrets_of(row, clock.now())
    assert secret in page
    assert "stays valid" not in page
    assert target_of(row) == address
    assert client.post(f"/alerts/channels/{row.pk}/", form).status_code == 302
    assert secrets_of(Channel.objects.get(), clock.now()) == [secret]


def test_a_webhook_with_a_referenced_address_gets_a_new_secret_after_another_key(
    project: Project, client: Client, settings: Any
) -> None:
    row = make_channel(project, "webhook", "env:HOOK")
    settings.FAILSOFT_WORKING_KEY = base64.b64encode(bytes(range(32))).decode()
    page = client.post(f"/alerts/channels/{row.pk}/rotate/").text
    (secret,) = secrets_of(Channel.objects.get(), clock.now())
    assert secret in page


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"email": "not an address"}, "valid email"),
        ({"email": ""}, "1 to 20 addresses"),
        ({"email": "a@example.org\r\nBcc: b@example.org"}, "valid email"),
        ({"kind": "webhook", "webhook": "ftp://example.org/"}, "Only http and https"),
        ({"kind": "webhook", "webhook": "https://u:p@example.org/"}, "Credentials in a URL"),
        ({"kind": "chat", "chat": "slack"}, "not an address such as"),
        (
            {"kind": "webhook", "webhook": "https://hooks.slack.com/services/T/B/x"},
            "takes no signed webhooks",
        ),
        (
            {"kind": "chat", "chat": "slack://T/B/x?template=/etc/passwd"},
            "The parameter &#x27;template&#x27; is not allowed",
        ),
        ({"kind": "chat", "chat": "mailto://a@b.c"}, "mailto:// is not supported"),
        ({"kind": "chat", "chat": "file:/etc/passwd"}, "must be in /run/secrets"),
        ({"kind": "webhook", "webhook": "env:FAILSOFT_SECRET_KEY"}, "cannot be used as addresses"),
        ({"quiet_from": "22:00"}, "Set both ends"),
        ({"quiet_from": "22:00", "quiet_to": "22:00"}, "Choose another time"),
        ({"zone": "Mars/Base"}, "Europe/Berlin"),
        ({"escalate_after_minutes": "5"}, "Set both:"),
    ],
)
def test_a_wrong_channel_is_refused_at_its_box(
    project: Project, client: Client, change: dict[str, str], says: str
) -> None:
    page = client.post("/alerts/channels/new/", {**CHANNEL, **change}).content.decode()
    assert says in page
    assert not Channel.objects.exists()


def test_a_channel_of_mail_never_loses_its_addresses(project: Project, client: Client) -> None:
    row = make_channel(project, name="on call")
    page = client.post(f"/alerts/channels/{row.pk}/", {**CHANNEL, "email": ""}).content.decode()
    assert "1 to 20 addresses" in page
    assert Channel.objects.get().shown == row.shown


def test_a_silence_is_made_and_ended(project: Project, client: Client) -> None:
    given = {"filter": "model=m-1", "hours": "4", "reason": "They know."}
    client.post("/alerts/silences/new/", given)
    silence = Silence.objects.get()
    assert "model:=m-1" in client.get("/alerts/silences/").content.decode()
    client.post(f"/alerts/silences/{silence.pk}/end/")
    silence.refresh_from_db()
    assert silence.ends_at <= clock.now()


def test_planned_work_is_a_silence_that_begins_later(project: Project, client: Client) -> None:
    plan = {"covers_all": "1", "starts_at": "2030-07-01T22:00", "tz": "Europe/Berlin", "hours": "4"}
    client.post("/alerts/silences/new/", plan)
    silence = Silence.objects.get()
    assert silence.starts_at.isoformat() == "2030-07-01T20:00:00+00:00"
    assert silence.ends_at.isoformat() == "2030-07-02T00:00:00+00:00"
    assert "scheduled" in client.get("/alerts/silences/").content.decode()
    for text in ("tonight", "9999-12-31T23:00"):
        wrong = client.post("/alerts/silences/new/", {**plan, "starts_at": text})
        assert "Not a valid time." in wrong.content.decode()
    assert client.post("/alerts/silences/new/", {**plan, "starts_at": "\0"}).status_code == 200
    assert Silence.objects.count() == 1
    client.post(f"/alerts/silences/{silence.pk}/end/")
    assert "scheduled" not in client.get("/alerts/silences/").content.decode()


def test_a_silence_lasts_its_hours_when_the_clocks_change(project: Project, client: Client) -> None:
    night = {"covers_all": "1", "starts_at": "2030-10-26T23:00", "tz": "Europe/Berlin"}
    client.post("/alerts/silences/new/", {**night, "hours": "6"})
    silence = Silence.objects.get()
    assert silence.ends_at - silence.starts_at == timedelta(hours=6)


def test_a_rule_deleted_while_another_edits_it_stays_deleted(project: Project) -> None:
    row = make_rule(project)
    stale = AlertRule.objects.get()
    archive_rule(row, None)
    with pytest.raises(RuleError, match="deleted") as refused:
        change_rule(stale, {"name": "Another name"}, None)
    assert "deleted" in refused.value.faults["name"]
    assert not live_rules(project.pk).exists()


def test_who_may_do_what(project: Project, client: Client) -> None:
    rule, channel = make_rule(project), make_channel(project)
    silence = Silence.objects.create(
        project=project, starts_at=clock.now(), ends_at=clock.now() + timedelta(hours=1)
    )
    by_admin = [
        "/alerts/rules/new/",
        f"/alerts/rules/{rule.pk}/switch/",
        f"/alerts/rules/{rule.pk}/delete/",
        "/alerts/channels/new/",
        f"/alerts/channels/{channel.pk}/",
        f"/alerts/channels/{channel.pk}/test/",
        f"/alerts/channels/{channel.pk}/rotate/",
        f"/alerts/channels/{channel.pk}/delete/",
    ]
    by_operator = ["/alerts/silences/new/", f"/alerts/silences/{silence.pk}/end/"]
    Membership.objects.update(role=Role.VIEWER)
    for path in (*by_admin, *by_operator):
        assert client.post(path).status_code == 403, path
    Membership.objects.update(role=Role.OPERATOR)
    for path in by_admin:
        assert client.post(path).status_code == 403, path
    other = Project.objects.create(slug="p2", name="P2")
    client.force_login(make_member(other, "eve", Role.ADMIN))
    for path in (*by_admin, *by_operator):
        if "new" not in path:
            assert client.post(path).status_code == 404, path


@pytest.mark.parametrize("page", ["rules", "silences", "channels"])
def test_lists_need_few_queries(
    project: Project,
    client: Client,
    page: str,
    django_assert_max_num_queries: DjangoAssertNumQueries,
) -> None:
    for number in range(5):
        make_incident(project, f"m-{number}")
        make_channel(project)
    with django_assert_max_num_queries(10):
        client.get(f"/alerts/{page}/")


def test_alerts_lead_to_the_rules(project: Project, client: Client) -> None:
    answer = client.get("/alerts/")
    assert answer.status_code == 302
    assert answer["Location"] == "/alerts/rules/"

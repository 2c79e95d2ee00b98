"""Pages of reports, by role and project; links of mails, forged, old and foreign."""

from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.contrib.auth.models import User
from django.core import mail
from django.test import Client

from diagnostics import clock
from diagnostics.accounts.models import AuditEntry, Project, SavedView
from diagnostics.reports.archive import archive_last_days
from diagnostics.reports.models import ReportDelivery, Subscription
from diagnostics.reports.subscriptions import LinkAction, action_url, subscription_of
from tests.console import Role, make_member
from tests.diagnostics.alerting.notifications.building import make_incident
from tests.diagnostics.reports.conftest import make_subscription

pytestmark = pytest.mark.django_db

FORM = {
    "view": "",
    "filter": "model:haiku -env:dev",
    "cadence": "weekly",
    "weekday": "0",
    "month_day": "1",
    "at": "08:00",
    "zone": "Europe/Berlin",
}


@pytest.fixture
def signed_in(client: Client, ann: User) -> Client:
    client.force_login(ann)
    return client


def path_of(url: str, settings: Any) -> str:
    return url.removeprefix(settings.FAILSOFT_BASE_URL)


def test_a_viewer_subscribes_changes_and_ends(signed_in: Client, project: Project) -> None:
    page = signed_in.get("/reports/").content.decode()
    assert "You get no reports" in page
    assert "<span>0</span>" not in page
    assert signed_in.get("/reports/new/").status_code == 200
    # Whose zone nobody told gets the browser's.
    assert "data-own-zone" in signed_in.get("/reports/new/").content.decode()
    assert signed_in.post("/reports/new/", FORM).status_code == 302
    made = Subscription.objects.get()
    assert (made.cadence, made.weekday, made.month_day) == ("weekly", 0, None)
    assert made.query == "q=model%3Ahaiku+-env%3Adev"
    assert made.next_at > clock.now()
    page = signed_in.get("/reports/").content.decode()
    assert "every Monday at 08:00, Europe/Berlin" in page
    edit = f"/reports/subscriptions/{made.pk}/"
    assert "model:haiku -env:dev" in signed_in.get(edit).content.decode()
    signed_in.post(edit, {**FORM, "cadence": "monthly", "month_day": "31"})
    made.refresh_from_db()
    assert (made.cadence, made.weekday, made.month_day) == ("monthly", None, 31)
    for order, expected in (("pause", "paused"), ("resume", "31 of the month")):
        signed_in.post(f"{edit}order/", {"order": order})
        assert expected in signed_in.get("/reports/").content.decode()
    signed_in.post(f"{edit}order/", {"order": "delete"})
    assert "You get no reports" in signed_in.get("/reports/").content.decode()
    actions = AuditEntry.objects.order_by("number").values_list("action", flat=True)
    assert list(actions) == [
        "report.subscribed",
        "report.changed",
        "report.paused",
        "report.resumed",
        "report.unsubscribed",
    ]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"zone": "Europe/Nowhere"}, "time zone such as Europe/Berlin"),
        ({"month_day": "32", "cadence": "monthly"}, "less than or equal to 31"),
        ({"at": "25:00"}, "valid time"),
        ({"filter": "attempt:never"}, "number from 1"),
    ],
    ids=["zone", "day", "time", "filter"],
)
def test_what_is_no_subscription_is_refused(
    signed_in: Client, changes: dict[str, str], said: str
) -> None:
    page = signed_in.post("/reports/new/", {**FORM, **changes}).content.decode()
    assert said in page
    assert not Subscription.objects.exists()


def test_only_administrators_name_outside_addresses(
    client: Client, project: Project, ann: User
) -> None:
    client.force_login(ann)
    client.post("/reports/new/", {**FORM, "address": "out@example.org"})
    assert Subscription.objects.get().user == ann
    client.force_login(make_member(project, "boss", Role.ADMIN))
    client.post("/reports/new/", {**FORM, "address": "out@example.org"})
    assert Subscription.objects.filter(user=None, address="out@example.org").exists()
    assert "out@example.org" in client.get("/reports/").content.decode()


def test_another_persons_subscription_is_not_there(
    client: Client, project: Project, ann: User
) -> None:
    made = make_subscription(project, ann)
    client.force_login(make_member(project, "bob"))
    base = f"/reports/subscriptions/{made.pk}/"
    for end in ("", "preview/", "preview/mail/"):
        assert client.get(base + end).status_code == 404
    for end in ("", "order/", "send/"):
        assert client.post(base + end, FORM).status_code == 404


def test_s20_another_projects_rows_are_not_there(client: Client, project: Project) -> None:
    made = archive_last_days(project, clock.now())
    subscription = make_subscription(project)
    other = Project.objects.create(slug="other", name="Other")
    client.force_login(make_member(other, "eve", Role.ADMIN))
    for path in (f"/reports/{made.pk}/", f"/reports/{made.pk}.txt", f"/reports/{made.pk}/mail/"):
        assert client.get(path).status_code == 404
    assert client.get(f"/reports/subscriptions/{subscription.pk}/").status_code == 404
    assert "Planner" not in client.get("/reports/").content.decode()
    view = SavedView.objects.create(
        project=project, owner=make_member(project, "bob"), name="v", page="now"
    )
    page = client.post("/reports/new/", {**FORM, "view": str(view.pk)}).content.decode()
    assert "Select a valid choice" in page


def test_a_report_is_bound_to_a_view_and_outlives_it(
    signed_in: Client, project: Project, ann: User
) -> None:
    view = SavedView.objects.create(
        project=project, owner=ann, name="Only haiku", page="now", query="model=haiku"
    )
    signed_in.post("/reports/new/", {**FORM, "view": str(view.pk), "filter": ""})
    made = Subscription.objects.get()
    assert (made.view, made.query) == (view, "model=haiku")
    assert "Only haiku" in signed_in.get("/reports/").content.decode()
    view.delete()
    made.refresh_from_db()
    assert (made.view, made.query) == (None, "model=haiku")


def test_a_report_of_a_filter_is_titled_by_its_filter(signed_in: Client, project: Project) -> None:
    signed_in.post("/reports/new/", FORM)
    made = Subscription.objects.get()
    page = signed_in.get(f"/reports/subscriptions/{made.pk}/preview/").content.decode()
    assert "<h1>Preview: model:haiku -env:dev</h1>" in page
    assert "model:haiku -env:dev weekly: no runs" in page
    signed_in.post(f"/reports/subscriptions/{made.pk}/", {**FORM, "filter": ""})
    assert Subscription.objects.get().title == project.name


def test_a_pause_says_until_when_in_the_zone_of_the_report(
    signed_in: Client, project: Project
) -> None:
    signed_in.post("/reports/new/", {**FORM, "zone": "Asia/Tokyo"})
    made = Subscription.objects.get()
    path = f"/reports/subscriptions/{made.pk}/order/"
    page = signed_in.post(path, {"order": "pause"}, follow=True).content.decode()
    made.refresh_from_db()
    assert made.paused_until is not None
    local = made.paused_until.astimezone(ZoneInfo("Asia/Tokyo"))
    assert f"Paused until {local:%-d %b %Y %H:%M} Asia/Tokyo." in page


def test_the_archive_shows_a_report_as_page_text_and_mail(
    signed_in: Client, project: Project
) -> None:
    made = archive_last_days(project, clock.now())
    assert made.subject in signed_in.get("/reports/").content.decode()
    assert "No run ended" in signed_in.get(f"/reports/{made.pk}/").content.decode()
    text = signed_in.get(f"/reports/{made.pk}.txt")
    assert text["Content-Type"].startswith("text/plain")
    assert "No run ended" in text.content.decode()
    framed = signed_in.get(f"/reports/{made.pk}/mail/")
    assert "sandbox" in framed["Content-Security-Policy"]
    assert "script" not in framed["Content-Security-Policy"]
    assert framed["X-Frame-Options"] == "SAMEORIGIN"


def test_the_archive_is_paged(signed_in: Client, project: Project) -> None:
    for week in range(30):
        archive_last_days(project, clock.now() - timedelta(weeks=week))
    first = signed_in.get("/reports/").content.decode()
    assert first.count('href="/reports/') > 25
    link = first.partition('href="?before=')[2].partition('"')[0]
    second = signed_in.get(f"/reports/?before={link}").content.decode()
    assert second.count("no change") == 5
    assert signed_in.get("/reports/?before=x").status_code == 404


def test_a_preview_is_shown_and_sent_to_oneself_only(
    signed_in: Client, project: Project, ann: User
) -> None:
    made = make_subscription(project, ann)
    base = f"/reports/subscriptions/{made.pk}/"
    page = signed_in.get(f"{base}preview/").content.decode()
    assert "Planner daily: no runs" in page
    assert "<h1 " in signed_in.get(f"{base}preview/mail/").content.decode()
    assert signed_in.post(f"{base}send/").status_code == 302
    assert [one.to for one in mail.outbox] == [["ann@example.org"]]


def test_the_pages_ask_a_constant_number_of_questions(
    signed_in: Client, project: Project, ann: User, django_assert_max_num_queries: Any
) -> None:
    archive_last_days(project, clock.now())
    for _ in range(10):
        make_subscription(project, ann)
    with django_assert_max_num_queries(12):
        signed_in.get("/reports/")


def test_a_page_of_many_subscriptions_stays_small(client: Client, project: Project) -> None:
    client.force_login(make_member(project, "boss", Role.ADMIN))
    for at in range(60):
        make_subscription(project, address=f"out{at}@example.org")
    archive_last_days(project, clock.now())
    page = client.get("/reports/").content.decode()
    assert "the next 50 of 60" in page
    assert len(page.encode()) <= 60_000
    assert page.count("</") + page.count("<input") <= 1_500


def test_who_is_not_signed_in_is_led_to_sign_in(client: Client) -> None:
    assert client.get("/reports/").status_code == 302


@pytest.mark.parametrize("order", LinkAction)
def test_a_link_asks_first_and_acts_on_a_post_without_sign_in(
    project: Project, settings: Any, order: LinkAction
) -> None:
    made = make_subscription(project)
    path = path_of(action_url(made, order, clock.now()), settings)
    client = Client(enforce_csrf_checks=True)
    assert client.get(path).status_code == 200
    made.refresh_from_db()
    assert (made.unsubscribed_at, made.paused_until) == (None, None)
    # As mail programs send it (RFC 8058).
    assert client.post(path, {"List-Unsubscribe": "One-Click"}).status_code == 200
    made.refresh_from_db()
    assert bool(made.unsubscribed_at) is (order is LinkAction.UNSUBSCRIBE)
    assert bool(made.paused_until) is (order is LinkAction.PAUSE)
    assert client.post(path).status_code == 200
    assert client.get(path)["Referrer-Policy"] == "no-referrer"


def test_s17_forged_old_and_foreign_links_do_nothing(
    client: Client, project: Project, settings: Any
) -> None:
    mine = make_subscription(project, address="a@example.org")
    other = make_subscription(project, address="b@example.org", token="u" * 22)
    now = clock.now()
    good = path_of(action_url(mine, LinkAction.UNSUBSCRIBE, now), settings)
    token = good.removeprefix("/reports/unsubscribe/").removesuffix("/")
    signature = token.rpartition(".")[2]
    until = token.split("-")[1]
    forged = [
        f"/reports/unsubscribe/{token[:-1]}x/",
        f"/reports/unsubscribe/{other.pk}-{until}-{other.token}.{signature}/",
        f"/reports/pause/{token}/",
        "/reports/unsubscribe/x/",
        path_of(action_url(mine, LinkAction.UNSUBSCRIBE, now - timedelta(days=401)), settings),
        path_of(action_url(mine, LinkAction.PAUSE, now - timedelta(days=61)), settings),
    ]
    for path in forged:
        assert client.post(path).status_code == 404
    assert not Subscription.objects.exclude(unsubscribed_at=None).exists()
    assert subscription_of(LinkAction.UNSUBSCRIBE, token, now) == mine
    Subscription.objects.filter(pk=mine.pk).update(token="v" * 22)
    assert client.post(good).status_code == 404


def test_the_preview_says_what_is_open_now_though_it_fired_after_the_period(
    signed_in: Client, project: Project
) -> None:
    make_incident(project, "haiku-young")
    signed_in.post("/reports/new/", FORM)
    page = signed_in.get(f"/reports/subscriptions/{Subscription.objects.get().pk}/preview/")
    text = page.content.decode()
    assert "anthropic/haiku-young · " in text
    assert "0 incidents in the period, 1 open when this report was made." in text


def test_a_failure_is_shown_until_a_later_report_arrives(
    signed_in: Client, project: Project, ann: User
) -> None:
    made, now = make_subscription(project, ann), clock.now()
    for number, state in enumerate(["failed", "sent"]):
        begin = now - timedelta(days=3 - number)
        ReportDelivery.objects.create(
            project=project,
            subscription=made,
            period_start=begin,
            period_end=begin + timedelta(days=1),
            state=state,
            next_attempt_at=begin,
            created_at=begin,
            message_id=f"<{number}@example.org>",
        )
        assert ("not delivered" in signed_in.get("/reports/").text) is (state == "failed")

"""The administration shows everything and changes little."""

import pytest
from django.apps import apps
from django.contrib.admin import site
from django.contrib.auth.models import Permission, User
from django.db.models import CompositePrimaryKey, Model
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from agents.demo.loading import load
from agents.goals.models import Goal
from diagnostics import clock
from diagnostics.accounts.administration import HIDDEN, OURS, project_path
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import ApiKey, AuditEntry, Membership, Project
from diagnostics.accounts.projects import issue_key
from diagnostics.ingest.recording import record
from diagnostics.store.aggregation import fold
from diagnostics.store.models import Heartbeat
from diagnostics.store.outbox import enqueue
from failsoft.events import PostedEvent
from tests.diagnostics.builders import AT, make_event, succeeded

pytestmark = pytest.mark.django_db
PAGES = ("project", "apikey", "outboxmessage", "heartbeat")


@pytest.fixture
def admin() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    return client


@pytest.mark.parametrize("page", PAGES)
def test_every_list_and_row_can_be_looked_at(admin: Client, page: str) -> None:
    project = Project.objects.create(slug="p", name="P")
    key = issue_key(project, "k", [Scope.READ])
    message = enqueue("a.task", {}, "fold", None)
    Heartbeat.objects.create(name="beat", at=AT)
    rows = dict(zip(PAGES, (project.pk, key.row.pk, message.pk, "beat"), strict=True))
    assert admin.get(f"/admin/diagnostics/{page}/").status_code == 200
    answer = admin.get(f"/admin/diagnostics/{page}/{rows[page]}/change/")
    assert answer.status_code == 200
    assert bytes(key.row.secret_hash).hex() not in answer.text


@pytest.mark.parametrize("page", PAGES[1:])
def test_rows_of_the_product_cannot_be_added(admin: Client, page: str) -> None:
    assert admin.get(f"/admin/diagnostics/{page}/add/").status_code == 403


def test_a_key_is_revoked(admin: Client) -> None:
    project = Project.objects.create(slug="p", name="P")
    key = issue_key(project, "k", [Scope.READ]).row
    chosen = {"action": "revoke", "_selected_action": [key.pk]}
    admin.post("/admin/diagnostics/apikey/", chosen)
    assert ApiKey.objects.get().revoked_at is not None
    noted = AuditEntry.objects.get(chain=project.pk)
    assert (noted.actor, noted.action, noted.target) == ("root", "key.revoked", "k")


def test_whatever_is_changed_here_is_in_the_audit_log(admin: Client) -> None:
    bob = User.objects.create_user("bob")
    page = f"/admin/auth/user/{bob.pk}/"
    form = {"username": "bob", "is_superuser": "on", "is_active": ""}
    assert admin.post(f"{page}change/", form).status_code == 302
    admin.post("/admin/auth/group/add/", {"name": "ops"})
    admin.post(f"{page}delete/", {"post": "yes"})
    entries = AuditEntry.objects.filter(chain=0).order_by("number")
    assert list(entries.values_list("actor", "action", "target", "details")) == [
        ("root", "admin.changed", "auth.user bob", '{"changed":"Active, Superuser status"}'),
        ("root", "admin.added", "auth.group ops", "{}"),
        ("root", "admin.deleted", "auth.user bob", "{}"),
    ]


def test_events_are_found_by_id_and_narrowed_by_model_and_kind(admin: Client) -> None:
    project = Project.objects.create(slug="p", name="P")
    other = Project.objects.create(slug="z", name="Z")
    kept = make_event(correlation_id="run-a", model="m-1")
    events = [kept, PostedEvent.model_validate(succeeded(correlation_id="run-b", model="m-2"))]
    record(project.pk, events)
    record(other.pk, [make_event(correlation_id="theirs")])
    fold()
    page = "/admin/diagnostics/storedevent/"
    asked: dict[str, dict[str, str | int]] = {
        "12": {},
        "1": {"model": "m-1"},
        "2": {"kind": "succeeded"},
        "": {"q": "run-"},
        "t": {"project__id__exact": other.pk},
    }
    names = {"1": str(kept.event_id), "2": str(events[1].event_id)}
    for expected, query in asked.items():
        html = admin.get(page, query).content.decode()
        assert {name for name, event_id in names.items() if event_id in html} == (
            set(expected) - {"t"}
        ), query
    for term in ("run-a", str(kept.event_id)):
        html = admin.get(page, {"q": term}).content.decode()
        assert (names["1"] in html, names["2"] in html) == (True, False)
    assert "run-a" in admin.get(f"{page}{kept.event_id}/change/").content.decode()
    assert admin.get(f"{page}nonsense/change/").status_code == 302
    assert admin.get(f"{page}add/").status_code == 403


def test_events_are_narrowed_as_in_the_console_and_lead_to_their_run(
    admin: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    project = Project.objects.create(slug="p", name="P")
    kept = make_event(
        correlation_id="run/a",
        environment="prod",
        provider="acme",
        raw_output_preview="<b>not a plan</b>",
        validation_errors=[{"path": "/steps/0/tool", "code": "missing", "message": "required"}],
    )
    other = make_event(correlation_id="run-b", environment="dev", provider="other")
    record(project.pk, [kept, other])
    fold()
    page = "/admin/diagnostics/storedevent/"
    for query in ({"environment": "prod"}, {"provider": "acme"}):
        with django_assert_max_num_queries(12):
            html = admin.get(page, query).text
        assert (str(kept.event_id) in html, str(other.event_id) in html) == (True, False), query
    assert "counted up to 10,000" in html
    assert 'href="/runs/run/a/"' in html
    day = {"occurred_at__gte": f"{kept.occurred_at:%Y-%m-%d} 00:00:00+00:00"}
    assert str(kept.event_id) in admin.get(page, day).text
    html = admin.get(f"{page}{kept.event_id}/change/").text
    assert "&lt;b&gt;not a plan&lt;/b&gt;" in html
    assert "<code>/steps/0/tool</code> required" in html


def test_tables_that_only_the_product_reads_come_last(admin: Client) -> None:
    page = admin.get("/admin/")
    *groups, last = page.context["app_list"]
    assert last["name"] == "Internals"
    assert max(len(group["models"]) for group in groups) <= 15
    assert "Project statuses" in page.text
    assert "statuss" not in page.text


def our_models() -> list[type[Model]]:
    """Give every model of ours that Django's administration can take."""
    return [
        model
        for model in apps.get_models()
        if model._meta.app_label in OURS and not isinstance(model._meta.pk, CompositePrimaryKey)
    ]


def test_every_model_of_every_app_is_registered() -> None:
    missing = [model for model in our_models() if not site.is_registered(model)]
    assert missing == []
    assert len(our_models()) > 40


def test_what_only_the_product_writes_is_read_only(admin: Client) -> None:
    written = {"Project", "Quota", "Provider", "LanguageModel", "ProjectToolPolicy"}
    for model in our_models():
        if model.__name__ not in written:
            label = f"{model._meta.app_label}/{model._meta.model_name}"
            assert admin.get(f"/admin/{label}/add/").status_code == 403, label


@pytest.mark.slow
def test_every_list_opens_and_shows_no_secret(admin: Client) -> None:
    load(Project.objects.create(slug="p", name="P"), clock.now(), volume=0.001)
    for model in our_models():
        label = f"{model._meta.app_label}/{model._meta.model_name}"
        assert admin.get(f"/admin/{label}/").status_code == 200, label
        page = site._registry[model]
        shown = {*(page.fields or ()), *page.list_display}
        assert not shown & HIDDEN, label


def test_s22_signing_in_is_everybodys_own_page() -> None:
    answer = Client().get("/admin/")
    assert answer.status_code == 302
    there = Client().get(answer.headers["Location"])
    assert there.headers["Location"].startswith("/accounts/login/")


def test_members_who_are_no_staff_are_kept_out() -> None:
    client = Client()
    client.force_login(User.objects.create_user("ann"))
    assert client.get("/admin/login/").status_code == 403


@pytest.mark.slow
@pytest.mark.parametrize("role", Membership.Role.values)
def test_no_role_of_a_project_opens_a_page_of_the_administration(role: str) -> None:
    project = Project.objects.create(slug="p", name="P")
    member = User.objects.create_user(f"a-{role}")
    member.user_permissions.set(Permission.objects.all())
    Membership.objects.create(project=project, user=member, role=role)
    client = Client()
    client.force_login(member)
    for model in site._registry:
        path = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        for page in (path, f"{path}add/", f"{path}{project.pk}/change/", f"{path}1/delete/"):
            for answer in (client.get(page), client.post(page, {"action": "delete_selected"})):
                assert answer.status_code == 302, page
                assert answer.headers["Location"].startswith("/admin/login/"), page


@pytest.mark.slow
def test_s20_staff_see_the_projects_they_administer_only() -> None:
    mine = Project.objects.create(slug="mine", name="Mine")
    theirs = Project.objects.create(slug="otherpeoples", name="otherpeoples")
    load(theirs, clock.now(), volume=0.001)
    load(mine, clock.now(), volume=0.001)
    staff = User.objects.create_user("ann", is_staff=True)
    staff.user_permissions.set(Permission.objects.all())
    Membership.objects.create(project=mine, user=staff, role="admin")
    client = Client()
    client.force_login(staff)
    for model in our_models():
        label = f"{model._meta.app_label}/{model._meta.model_name}"
        page = client.get(f"/admin/{label}/")
        assert page.status_code == 200, label
        assert "otherpeoples" not in page.text, label
        path = project_path(model)
        if path is None:
            assert page.context["cl"].result_count == 0, label
            continue
        for row in model._default_manager.filter(**{path: theirs.pk})[:2]:
            answer = client.get(f"/admin/{label}/{row.pk}/change/")
            assert answer.status_code in (302, 404), label
            assert "otherpeoples" not in answer.text
    goal = Goal.objects.filter(project=mine)[0]
    assert client.get(f"/admin/agents/goal/{goal.pk}/change/").status_code == 200


def test_a_change_here_is_in_the_audit_log(admin: Client) -> None:
    project = Project.objects.create(slug="p", name="P")
    admin.post("/admin/diagnostics/quota/add/", {"project": project.pk})
    entry = AuditEntry.objects.get(chain=project.pk)
    assert (entry.action, entry.actor) == ("admin.added", "root")

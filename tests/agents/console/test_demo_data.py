"""The demo data by one click: ordered by admins, done by a worker, written down."""

from collections.abc import Callable

import pytest
from django.conf import LazySettings
from django.test import Client

from agents.demo import loading
from agents.goals.models import Goal
from agents.jobs import DemoOrder
from diagnostics import clock
from diagnostics.accounts.models import AuditEntry, Project
from diagnostics.store.models import OutboxMessage
from tests.console import Role, make_member

SMALL = 0.003


@pytest.fixture
def admin(
    client: Client, project: Project, settings: LazySettings, monkeypatch: pytest.MonkeyPatch
) -> Client:
    settings.FAILSOFT_REQUIRE_MFA = False
    load: Callable[..., loading.DemoCounts] = loading.load
    monkeypatch.setattr(loading, "load", lambda project, now: load(project, now, volume=SMALL))
    client.force_login(make_member(project, "root", Role.ADMIN))
    return client


def work_off(project: Project) -> None:
    """Do what a worker does with the orders that are queued."""
    for message in OutboxMessage.objects.filter(project=project, task=loading.TASK).order_by("pk"):
        loading.carry_out(**message.kwargs)


def test_one_click_loads_and_one_removes(admin: Client, project: Project) -> None:
    admin.post("/settings/demo/", {"do": "load"})
    html = admin.get("/settings/demo/").content.decode()
    assert "Loading takes about 30 s" in html
    assert "data-poll" in html
    work_off(project)
    html = admin.get("/settings/demo/").content.decode()
    assert "Remove demo data" in html
    assert "data-poll" not in html
    assert Goal.objects.filter(project=project).exists()

    admin.post("/settings/demo/", {"do": "remove"})
    work_off(project)
    assert not Goal.objects.filter(project=project).exists()
    assert "Load demo data" in admin.get("/settings/demo/").content.decode()
    actions = AuditEntry.objects.filter(action__startswith="demo.").order_by("number")
    assert list(actions.values_list("action", flat=True)) == [
        "demo.load_ordered",
        "demo.load_done",
        "demo.remove_ordered",
        "demo.remove_done",
    ]


def test_two_clicks_are_one_order(admin: Client, project: Project) -> None:
    admin.post("/settings/demo/", {"do": "load"})
    admin.post("/settings/demo/", {"do": "load"})
    admin.post("/settings/demo/", {"do": "remove"})
    assert DemoOrder.objects.count() == 1
    assert "previous request is still running" in admin.get("/settings/demo/").content.decode()


def test_an_order_whose_worker_died_can_be_given_again(admin: Client, project: Project) -> None:
    admin.post("/settings/demo/", {"do": "load"})
    long_ago = clock.now() - 2 * loading.LOST
    DemoOrder.objects.update(at=long_ago)
    admin.post("/settings/demo/", {"do": "load"})
    assert sorted(DemoOrder.objects.values_list("status", flat=True)) == ["failed", "running"]


def test_a_load_that_failed_halfway_can_be_repeated_or_removed(
    admin: Client, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no disk")

    admin.post("/settings/demo/", {"do": "load"})
    monkeypatch.setattr(loading, "write_runs", fail)
    with pytest.raises(RuntimeError, match="no disk"):
        work_off(project)
    html = admin.get("/settings/demo/").content.decode()
    assert "Load demo data" in html
    assert "Remove demo data" in html


def test_the_page_of_an_order_whose_worker_died_has_its_button_again(
    admin: Client, project: Project
) -> None:
    admin.post("/settings/demo/", {"do": "load"})
    assert "Load demo data" not in admin.get("/settings/demo/").content.decode()
    DemoOrder.objects.update(at=clock.now() - 2 * loading.LOST)
    html = admin.get("/settings/demo/").content.decode()
    assert "Failed: see the worker log" in html
    assert "Load demo data" in html
    assert DemoOrder.objects.get().status == "running", "a page that is read stores nothing"
    admin.post("/settings/demo/", {"do": "load"})
    assert list(DemoOrder.objects.order_by("pk").values_list("status", flat=True)) == [
        "failed",
        "running",
    ]


def test_a_load_that_fails_says_so(
    admin: Client, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no disk")

    monkeypatch.setattr(loading, "load", fail)
    admin.post("/settings/demo/", {"do": "load"})
    with pytest.raises(RuntimeError, match="no disk"):
        work_off(project)
    html = admin.get("/settings/demo/").content.decode()
    assert "Failed: see the worker log" in html


def test_others_than_admins_are_not_asked(client: Client, project: Project) -> None:
    answer = client.post("/settings/demo/", {"do": "load"})
    assert answer.status_code == 403
    assert not DemoOrder.objects.exists()
    assert "Load demo data" not in client.get("/runs/").content.decode()


def test_an_empty_page_has_the_button_for_admins(admin: Client) -> None:
    assert "Load demo data" in admin.get("/runs/").content.decode()
    assert "Choose to load" not in admin.get("/runs/").content.decode()


def test_nonsense_is_refused(admin: Client) -> None:
    admin.post("/settings/demo/", {"do": "dance"})
    assert not DemoOrder.objects.exists()

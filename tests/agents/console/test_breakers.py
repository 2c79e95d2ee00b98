"""The page of circuit breakers: states in words, history, moved by hand."""

from datetime import timedelta

import pytest
from django.test import Client

from agents.breakers.models import Breaker, BreakerTransition
from agents.breakers.store import ManualChange, change_breaker
from diagnostics import clock
from diagnostics.accounts.models import AuditEntry, Project
from failsoft.retry.breaker import isolate
from tests.agents.console.conftest import Read
from tests.console import Role, make_member, make_model


def make_breaker(project: Project, **fields: object) -> Breaker:
    row: dict[str, object] = {
        "provider": "fake",
        "model": "fake-1",
        "operation": "plan",
        "kind": "transport",
        **fields,
    }
    return Breaker.objects.create(project=project, **row)


def test_what_holds_something_back_comes_first_and_says_what_it_means(
    project: Project, read: Read
) -> None:
    make_breaker(project, model="fine-1", faults_in_row=2)
    make_breaker(
        project,
        model="dead-1",
        state="open",
        cause="faults_in_a_row",
        open_until=clock.now() + timedelta(seconds=20),
        trips=1,
    )

    page = read("/breakers/")

    assert page.index("dead-1") < page.index("fine-1")
    assert "1 of 2 open" in page
    assert "No calls. One probe after the cool-down." in page
    assert "consecutive faults" in page


def test_an_operator_isolates_and_closes_with_a_reason_that_stays(
    project: Project, client: Client, read: Read
) -> None:
    row = make_breaker(project)

    client.post(f"/breakers/{row.pk}/isolate/", {"reason": "costs too much"})
    page = read("/breakers/")
    assert "Close it to resume." in page
    assert "costs too much" in page
    client.post(f"/breakers/{row.pk}/close/", {"reason": "new contract"})

    told = BreakerTransition.objects.order_by("pk").values_list("to_state", "actor", "reason")
    assert list(told) == [("isolated", "ann", "costs too much"), ("closed", "ann", "new contract")]
    entries = AuditEntry.objects.filter(action__startswith="breaker.").order_by("number")
    noted = entries.values_list("actor", "action", "target")
    assert list(noted) == [
        ("ann", "breaker.isolated", "fake/fake-1 plan"),
        ("ann", "breaker.closed", "fake/fake-1 plan"),
    ]


def test_a_model_that_never_failed_can_be_isolated(project: Project, client: Client) -> None:
    model = make_model(project)
    form = {"language_model": model.pk, "operation": "plan", "reason": "a test"}

    client.post("/breakers/isolate/", form)

    row = Breaker.objects.get()
    assert (row.model, row.operation, row.state) == ("fake-1", "plan", "isolated")


def test_a_model_is_isolated_for_several_operations_in_one_form(
    project: Project, client: Client, read: Read
) -> None:
    model = make_model(project)
    operations = ["plan", "next_step", "actions"]
    assert read("/breakers/").count('name="operation"') == len(operations)
    form = {"language_model": model.pk, "operation": operations, "reason": "a test"}
    client.post("/breakers/isolate/", form)
    assert Breaker.objects.filter(state="isolated").count() == len(operations)
    page = read("/breakers/")
    assert "Isolate a model" in page
    assert "Leave a model alone" not in page


def test_without_a_reason_nothing_moves(project: Project, client: Client, read: Read) -> None:
    row = make_breaker(project)

    client.post(f"/breakers/{row.pk}/isolate/", {"reason": " "})

    assert "Enter a reason" in read("/breakers/")
    row.refresh_from_db()
    assert row.state == "closed"
    answer = client.post("/breakers/isolate/", {"operation": "dance"})
    assert answer.status_code == 200
    assert not BreakerTransition.objects.exists()


def test_a_viewer_looks_and_another_project_sees_nothing(project: Project, client: Client) -> None:
    row = make_breaker(project)
    change_breaker(row.pk, isolate, ManualChange("ada"))
    client.force_login(make_member(project, "vic", Role.VIEWER))
    page = client.get("/breakers/").content.decode()
    assert "Isolated" in page
    assert "<form method" not in page.partition("<main")[2]
    assert client.post(f"/breakers/{row.pk}/close/", {"reason": "x"}).status_code == 403
    assert client.post("/breakers/isolate/", {"reason": "x"}).status_code == 403

    other = Project.objects.create(slug="other", name="Other")
    client.force_login(make_member(other, "eve"))
    assert "ada" not in client.get("/breakers/").content.decode()
    assert client.post(f"/breakers/{row.pk}/close/", {"reason": "x"}).status_code == 404


def test_the_empty_page_says_what_would_fill_it(project: Project, read: Read) -> None:
    assert "No breakers yet." in read("/breakers/")


@pytest.mark.parametrize("secret", ["sk-ant-api03-" + "x9Y" * 30])
def test_a_secret_in_a_reason_is_not_kept(project: Project, client: Client, secret: str) -> None:
    row = make_breaker(project)

    client.post(f"/breakers/{row.pk}/isolate/", {"reason": f"key {secret}"})

    assert secret not in BreakerTransition.objects.get().reason

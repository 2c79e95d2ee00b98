"""A new rule reaches what is stored, batch by batch, and can be killed in between."""

import json
from functools import partial

import pytest
from django.contrib.auth.models import User
from django.test import Client

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project, SavedView
from diagnostics.accounts.projects import issue_key
from diagnostics.alerting.incident_models import Incident, IncidentNote
from diagnostics.ingest import rejects
from diagnostics.ingest.models import Deploy
from diagnostics.ingest.recording import record
from diagnostics.redaction import rescrub
from diagnostics.redaction.rescrub import advance, advance_all, request_rescrub
from diagnostics.redaction.rules import RedactionRule, Rescrub, forget_rules
from diagnostics.store.aggregation import fold
from diagnostics.store.models import EventPayload
from tests.diagnostics.builders import AT, make_event, wire_event

pytestmark = pytest.mark.django_db
TICKET = "CUST-48213"
DEPLOY = {"at": AT.isoformat(), "kind": "release"}
OUTCOME = {"minute": f"{AT:%Y-%m-%dT%H:%M}Z", "source": "bot", "node": "plan", "ok_first": 3}


@pytest.fixture
def project() -> Project:
    forget_rules()
    return Project.objects.create(slug="p1", name="P1")


def add_rule(project: Project) -> None:
    RedactionRule.objects.create(
        project=project, name="customers", kind="customer", pattern="CUST-[0-9]+"
    )
    forget_rules()


def previews(project: Project) -> list[str | None]:
    rows = EventPayload.objects.filter(project=project).order_by("event_id")
    return list(rows.values_list("raw_output_preview", flat=True))


def test_a_rule_of_the_project_masks_what_comes_and_no_other_projects_texts(
    project: Project,
) -> None:
    other = Project.objects.create(slug="p2", name="P2")
    add_rule(project)
    for each in (project, other):
        record(each.pk, [make_event(raw_output_preview=f"for {TICKET}")])
    assert previews(project) == ["for [REDACTED:customer]"]
    assert previews(other) == [f"for {TICKET}"]
    kinds = EventPayload.objects.get(project=project).redacted_kinds
    assert kinds == ["customer"]


@pytest.mark.parametrize(
    ("path", "body", "where"),
    [
        ("events", [wire_event(attempt=0, raw_output_preview=f"for {TICKET}")], "rejects"),
        ("deploys", {**DEPLOY, "version": TICKET, "note": f"for {TICKET}"}, "deploys"),
        ("outcomes", [{**OUTCOME, "environment": TICKET}], "series?range=90d"),
    ],
)
def test_a_rule_of_the_project_masks_what_comes_at_every_door(
    project: Project, path: str, body: object, where: str
) -> None:
    add_rule(project)
    rejects.allowance.clear()
    key = issue_key(project, "bot", [Scope.INGEST, Scope.READ]).text
    send = partial(Client().generic, headers={"Authorization": f"Bearer {key}"})
    send("POST", f"/api/v1/{path}", json.dumps(body), "application/json")
    fold()
    told = send("GET", f"/api/v1/{where}").content.decode()
    assert "[REDACTED:customer]" in told
    assert TICKET not in told


def test_what_is_stored_is_masked_in_batches_that_may_be_killed(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rescrub, "BATCH_ROWS", 2)
    record(
        project.pk,
        [make_event(correlation_id=f"c{n}", raw_output_preview=f"{TICKET} {n}") for n in range(5)],
    )
    add_rule(project)
    assert request_rescrub(project.pk, None)
    assert not request_rescrub(project.pk, None)
    identity = Rescrub.objects.get().pk
    assert advance(identity)
    masked = [text for text in previews(project) if text and TICKET not in text]
    assert len(masked) == 2
    with pytest.MonkeyPatch.context() as broken:
        broken.setattr(rescrub, "_cursor_value", None)
        with pytest.raises(TypeError):
            advance(identity)
    assert Rescrub.objects.get().seen_rows == 2
    advance_all()
    done = Rescrub.objects.get()
    assert (done.status, done.seen_rows, done.changed_rows) == ("done", 5, 5)
    assert not [text for text in previews(project) if text and TICKET in text]
    assert request_rescrub(project.pk, None)


def test_a_request_that_never_moves_fails_and_says_so(project: Project) -> None:
    request_rescrub(project.pk, None)
    Rescrub.objects.update(starts=rescrub.MOST_STARTS)
    advance_all()
    assert Rescrub.objects.get().status == "failed"


def test_requests_that_share_the_batches_of_a_task_all_end(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rescrub, "BATCH_ROWS", 1)
    monkeypatch.setattr(rescrub, "BATCHES_A_TASK", 2)
    other = Project.objects.create(slug="p2", name="P2")
    for each in (project, other):
        record(
            each.pk,
            [make_event(correlation_id=f"c{n}", raw_output_preview=TICKET) for n in range(8)],
        )
        assert request_rescrub(each.pk, None)
    while Rescrub.objects.filter(status="running").exists():
        advance_all()
    assert {request.status for request in Rescrub.objects.all()} == {"done"}


def test_registered_texts_have_the_columns_they_name(project: Project) -> None:
    for source in rescrub._sources:
        names = {field.name for field in source.model._meta.get_fields()}
        assert {*source.texts, *source.documents} <= names
    assert rescrub.source_count() >= 9


def test_what_people_wrote_is_masked_again(project: Project) -> None:
    incident = Incident.objects.create(
        project=project, title=f"{TICKET} fails", onset=AT, fired_at=AT
    )
    note = IncidentNote.objects.create(incident=incident, at=AT, text=f"asked {TICKET}")
    other = Project.objects.create(slug="p2", name="P2")
    theirs = Incident.objects.create(project=other, title="theirs", onset=AT, fired_at=AT)
    kept = IncidentNote.objects.create(incident=theirs, at=AT, text=f"asked {TICKET}")
    deploy = Deploy.objects.create(
        project=project, at=AT, kind="prompt", version="2", note=f"for {TICKET}"
    )
    add_rule(project)
    assert request_rescrub(project.pk, None)
    advance_all()
    assert Rescrub.objects.get().status == "done"
    for row in (incident, note, kept, deploy):
        row.refresh_from_db()
    assert incident.title == "[REDACTED:customer] fails"
    assert note.text == "asked [REDACTED:customer]"
    assert kept.text == f"asked {TICKET}"
    assert deploy.note == "for [REDACTED:customer]"


def test_names_that_become_the_same_stay_apart_and_fit_their_column(project: Project) -> None:
    owner = User.objects.create_user("anna")
    for name in ("CUST-1", "CUST-2", "x" * 90 + " CUST-3"):
        SavedView.objects.create(project=project, owner=owner, name=name, page="now")
    add_rule(project)
    assert request_rescrub(project.pk, None)
    advance_all()
    assert Rescrub.objects.get().status == "done"
    rows = list(SavedView.objects.order_by("pk"))
    first, second, long = [view.name for view in rows]
    assert first == "[REDACTED:customer]"
    assert second == f"[REDACTED:customer] {rows[1].pk}"
    assert "CUST" not in long
    assert len(long) <= 100

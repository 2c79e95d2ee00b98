"""The audit log: what a person changed, in a chain that cannot be changed quietly."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from secrets import token_urlsafe
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.db.utils import ProgrammingError
from psycopg import sql

from diagnostics.accounts.audit_log import (
    Break,
    Head,
    details_of,
    from_address,
    note,
    verify_chains,
)
from diagnostics.accounts.models import AuditEntry, Project
from diagnostics.accounts.projects import ensure_default_project
from diagnostics.purge import purge_project

pytestmark = pytest.mark.django_db
CHANGES = (
    "UPDATE diagnostics_auditentry SET actor = 'somebody else'",
    "DELETE FROM diagnostics_auditentry",
    "TRUNCATE diagnostics_auditentry",
)


@pytest.fixture
def project() -> Project:
    return ensure_default_project()


@contextmanager
def without_guards() -> Iterator[Any]:
    """Do what only the owner of the table can: switch its guards off."""
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE diagnostics_auditentry DISABLE TRIGGER USER")
        yield cursor
        cursor.execute("ALTER TABLE diagnostics_auditentry ENABLE TRIGGER USER")


def fill(project: Project) -> None:
    for number in range(1, 6):
        note(project.pk, "a command", "key.created", f"key {number}", {"n": number})


def test_an_entry_names_who_did_what_to_what_from_where(project: Project) -> None:
    user = get_user_model().objects.create_user("ada")
    with from_address("192.0.2.7"):
        note(project.pk, user, "key.revoked", "build server", {"scopes": ["read"]})
    entry = AuditEntry.objects.get(action="key.revoked")
    assert (entry.actor_id, entry.actor) == (user.pk, "ada")
    assert (entry.target, entry.address) == ("build server", "192.0.2.7")
    assert details_of(entry) == {"scopes": ["read"]}


def test_an_entry_keeps_the_name_of_a_person_who_is_gone(project: Project) -> None:
    user = get_user_model().objects.create_user("ada")
    note(project.pk, user, "key.created", "k")
    number = user.pk
    user.delete()
    entry = AuditEntry.objects.get()
    assert (entry.actor_id, entry.actor) == (number, "ada")


def test_what_is_secret_is_masked_before_it_is_written(project: Project) -> None:
    secret = f"sk-ant-api03-{token_urlsafe(40)}"
    note(project.pk, None, "rule.saved", f"rule {secret}", {"text": f"x {secret}"})
    entry = AuditEntry.objects.get()
    assert secret not in entry.target + entry.details


@pytest.mark.parametrize("change", CHANGES, ids=["update", "delete", "truncate"])
def test_s24_the_database_refuses_every_change(project: Project, change: str) -> None:
    fill(project)
    with (
        pytest.raises(ProgrammingError, match="only added to"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(change)
    assert AuditEntry.objects.count() == 5
    assert [type(one) for one in verify_chains()] == [Head]


@pytest.mark.parametrize("column", ["actor", "action", "target", "details", "address"])
def test_s24_a_changed_field_is_named(project: Project, column: str) -> None:
    fill(project)
    with without_guards() as cursor:
        cursor.execute(
            sql.SQL("UPDATE diagnostics_auditentry SET {} = 'x' WHERE number = 3").format(
                sql.Identifier(column)
            )
        )
    (found,) = verify_chains()
    assert isinstance(found, Break)
    assert found.number == 3


def test_s24_a_missing_entry_is_named(project: Project) -> None:
    fill(project)
    with without_guards() as cursor:
        cursor.execute("DELETE FROM diagnostics_auditentry WHERE number = 2")
    (found,) = verify_chains()
    assert isinstance(found, Break)
    assert found.number == 2


def test_s24_two_entries_that_changed_places_are_named(project: Project) -> None:
    fill(project)
    with without_guards() as cursor:
        for old, new in ((2, 99), (3, 2), (99, 3)):
            cursor.execute(
                "UPDATE diagnostics_auditentry SET number = %s WHERE number = %s", [new, old]
            )
    (found,) = verify_chains()
    assert isinstance(found, Break)
    assert found.number == 2


def test_s24_an_end_that_was_cut_off_is_found_by_a_noted_head(project: Project) -> None:
    fill(project)
    (head,) = verify_chains()
    assert isinstance(head, Head)
    with without_guards() as cursor:
        cursor.execute("DELETE FROM diagnostics_auditentry WHERE number > 3")
    assert [type(one) for one in verify_chains()] == [Head]
    (found,) = verify_chains([head])
    assert isinstance(found, Break)
    assert found.number == 4


def test_a_change_that_is_rolled_back_leaves_no_entry(project: Project) -> None:
    with transaction.atomic():
        note(project.pk, None, "key.created", "k")
        transaction.set_rollback(True)
    assert not AuditEntry.objects.exists()


def test_purging_a_project_leaves_its_chain_whole(project: Project) -> None:
    fill(project)
    purge_project(project)
    (found,) = verify_chains()
    assert isinstance(found, Head)
    assert found.number == 5


def test_each_project_has_a_chain_and_the_installation_has_one(project: Project) -> None:
    other = Project.objects.create(slug="other", name="Other")
    for target in (project.pk, other.pk, None, project.pk):
        note(target, None, "x.changed", "x")
    ends = {one.chain: one.number for one in verify_chains()}
    assert ends == {0: 1, project.pk: 2, other.pk: 1}


def test_the_command_prints_every_end(project: Project) -> None:
    fill(project)
    out = StringIO()
    call_command("verify_audit", "--json", stdout=out)
    told = json.loads(out.getvalue())
    assert told["is_whole"]
    assert told["chains"][0]["number"] == 5


def test_a_recorded_end_of_another_form_is_named_with_the_form_it_has() -> None:
    with pytest.raises(CommandError, match="--head 3f2a: expected CHAIN:NUMBER:HASH, a line that"):
        call_command("verify_audit", "--head", "3f2a")


def test_the_command_names_the_first_broken_entry_and_exits_1(project: Project) -> None:
    fill(project)
    with without_guards() as cursor:
        cursor.execute("UPDATE diagnostics_auditentry SET actor = 'x' WHERE number = 4")
    with pytest.raises(CommandError, match="entry 4") as caught:
        call_command("verify_audit", stdout=StringIO())
    assert caught.value.returncode == 1

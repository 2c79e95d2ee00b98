"""Two projects, every address, every method: nobody reads or writes the other's (S20).

The resolver is walked, so an address that is added is tried without a line here.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.db import DatabaseError, connection, transaction
from django.test import Client

from agents.demo.loading import load
from agents.goals.models import Goal
from agents.llm.models import Provider
from diagnostics import clock
from diagnostics.accounts import authentication
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Membership, Project
from diagnostics.accounts.projects import IssuedKey, issue_key
from diagnostics.failures.models import FailureGroup
from diagnostics.ingest.deploy_items import PostedDeploy
from diagnostics.ingest.deploys import record_deploy
from diagnostics.ingest.rejects import note_refusals, refuse_body
from diagnostics.store import aggregation
from plans.models.run import Run
from tests.security.addresses import Address, all_addresses
from tests.security.foreign_rows import FIXED, WORD, first_of, is_known, model_of, rows_to_make
from tests.signing import PASSWORD, signed_in

pytestmark = pytest.mark.django_db
NOT_THERE = (404, 405)
# From the machine itself /metrics shows all projects.
ELSEWHERE = "192.0.2.1"
BODIES = {"post": b"{}", "put": b"{}", "patch": b"{}"}
# Pages are forms: a browser sends nothing else.
METHODS = {"key": ("get", "post", "put", "patch", "delete"), "person": ("get", "post")}
MOST_VALUES = 4
# Signing in and out, and what Django's own administration asks staff for.
NOT_OURS = ("accounts/", "admin/")
VERBS = ("approve", "reject", "resolve", "mute", "cancel")


@dataclass(frozen=True)
class Sides:
    """My key and person, and a project full of rows that are not mine."""

    mine: Project
    key: str
    user: Any
    theirs: Project
    their_key: IssuedKey

    @property
    def words(self) -> set[str]:
        """Texts that stand in the other project's rows and nowhere else."""
        return {WORD, self.their_key.row.key_id}


@pytest.fixture
def sides() -> Iterator[Sides]:
    authentication.forget_all()
    mine = Project.objects.create(slug="mine", name="Mine")
    theirs = Project.objects.create(slug=WORD, name=WORD)
    user = get_user_model().objects.create_user("me", password="p")
    Membership.objects.create(project=mine, user=user, role="admin")
    their_key = issue_key(theirs, WORD, [Scope.ADMIN])
    fill(theirs, their_key)
    key = issue_key(mine, "k", [Scope.ADMIN]).text
    yield Sides(mine, key, user, theirs, their_key)
    authentication.forget_all()


def fill(project: Project, key: IssuedKey) -> None:
    """Give a project rows of every kind."""
    load(project, clock.now(), volume=0.01)
    deploy = {"at": clock.now(), "kind": "prompt", "version": WORD}
    record_deploy(project.pk, PostedDeploy.model_validate(deploy))
    note_refusals(key.row, f"/{WORD}", 400, [refuse_body(WORD.encode(), "x", WORD)])
    aggregation.fold()
    for model in rows_to_make():
        # Some rows are bound by more than made-up values keep: then there is none.
        with suppress(DatabaseError), transaction.atomic():
            first_of(model, project)


def test_every_parameter_of_every_address_is_known() -> None:
    """Say in foreign_rows.py what a new parameter names: then it is tried below."""
    unknown = [
        (address.route, name)
        for address in all_addresses()
        for name in address.names
        if not address.route.startswith(NOT_OURS) and not is_known(address.route, name)
    ]
    assert unknown == []


@pytest.mark.slow
@pytest.mark.parametrize("who", ["key", "person"])
def test_foreign_rows_are_not_found_whatever_is_asked_of_them(sides: Sides, who: str) -> None:
    sides.user.set_password(PASSWORD)
    sides.user.save()
    client, key = (Client(), sides.key) if who == "key" else (signed_in("me"), "")
    client.raise_request_exception = False
    named = {
        address: {name: model_of(address.route, name) for name in address.names}
        for address in all_addresses()
        if not address.route.startswith(NOT_OURS)
    }
    asked = [
        (address, name_all(models, sides.theirs))
        for address, models in named.items()
        if address.route.startswith(("api/", "v1/")) is (who == "key") and any(models.values())
    ]
    before = rows_of(sides.theirs)
    wrong, tried = [], 0
    for address, values in asked:
        for method in METHODS[who]:
            code, body = ask(client, address, method, values, key)
            tried += 1
            if code not in NOT_THERE or any(s in body for s in sides.words - {*values.values()}):
                wrong.append((method, address.route, code))
    assert wrong == []
    assert rows_of(sides.theirs) == before
    assert tried > 20


def name_all(models: dict[str, Any], project: Project) -> dict[str, str]:
    """Give a value for each parameter: what a project's row is called, or a fixed one."""
    return {
        name: FIXED[name][0] if model is None else name_of(model, project)
        for name, model in models.items()
    }


def name_of(model: Any, project: Project) -> str:
    """Give what an address calls a project's row."""
    row = first_of(model, project)
    return str(row.correlation_id if model is Goal else row.pk)


def values_for(address: Address, sides: Sides) -> list[dict[str, str]]:
    """Give values for the parameters of an address: what is the other project's."""
    goals = Goal.objects.filter(project=sides.theirs)
    runs = Run.objects.filter(project=sides.theirs)
    goal, run = goals[0], runs[0]
    numbers = [
        Provider.objects.filter(project=sides.theirs)[0].pk,
        *FailureGroup.objects.filter(project=sides.theirs).values_list("pk")[:1],
    ]
    texts = [goal.correlation_id, str(goal.pk), str(run.pk), *VERBS]
    found: dict[str, list[str]] = {
        "uuid": [str(goal.pk), str(run.pk)],
        "int": [str(n[0] if isinstance(n, tuple) else n) for n in numbers],
        "slug": list(VERBS),
    }
    names = {name: found.get(kind_of(address, name), texts[:3]) for name in address.names}
    most = max((len(values) for values in names.values()), default=1)
    return [
        {name: values[place % len(values)] for name, values in names.items()}
        for place in range(min(most, MOST_VALUES))
    ]


def kind_of(address: Address, name: str) -> str:
    before, _, _ = address.route.partition(f":{name}>")
    return before.rpartition("<")[2]


def rows_of(project: Project) -> dict[str, tuple[int, str]]:
    """Give a fingerprint of every row of a project, by table."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid"
            " WHERE a.attname = 'project_id' AND c.relkind IN ('r', 'p')"
            " AND NOT c.relispartition ORDER BY 1"
        )
        tables = [name for (name,) in cursor.fetchall()]
        found = {}
        for table in tables:
            cursor.execute(
                "SELECT count(*), coalesce(md5(string_agg(t::text, '|'"  # noqa: S608
                f" ORDER BY t::text)), '') FROM \"{table}\" AS t WHERE project_id = %s",
                [project.pk],
            )
            found[table] = cursor.fetchone()
    return found


def secrets_of(sides: Sides) -> set[str]:
    """Give texts that stand in the other project's rows and nowhere else."""
    goals = Goal.objects.filter(project=sides.theirs)
    runs = Run.objects.filter(project=sides.theirs)
    told = {
        WORD,
        sides.their_key.row.key_id,
        *goals.values_list("correlation_id", flat=True)[:50],
        *map(str, goals.values_list("pk", flat=True)[:50]),
        *map(str, runs.values_list("pk", flat=True)[:50]),
    }
    return {text for text in told if len(text) > 6}


def ask(
    client: Client, address: Address, method: str, values: dict[str, str], key: str
) -> tuple[int, str]:
    path = address.path(**values)
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    call = getattr(client, method)
    told: dict[str, Any] = {"headers": headers}
    if method in BODIES:
        told |= {"data": BODIES[method], "content_type": "application/json"}
    answer = call(path, **told)
    return answer.status_code, answer.getvalue().decode("utf-8", "replace")


@pytest.mark.slow
@pytest.mark.parametrize("who", ["key", "person"])
def test_nothing_of_another_project_is_read_or_written(sides: Sides, who: str) -> None:
    before, secrets = rows_of(sides.theirs), secrets_of(sides)
    assert len([table for table, (count, _) in before.items() if count]) > 10
    leaks, faults = [], []
    for address in all_addresses():
        if address.route.startswith(NOT_OURS):
            continue
        client = Client(raise_request_exception=False, REMOTE_ADDR=ELSEWHERE)
        if who == "person":
            client.force_login(sides.user)
        for values in values_for(address, sides):
            for method in METHODS[who]:
                key = sides.key if who == "key" else ""
                code, body = ask(client, address, method, values, key)
                asked = set(values.values())
                # Here neither worker nor beat is there, and /readyz says so.
                if code >= 500 and address.route != "readyz":
                    faults.append((method, address.route, code))
                if code < 300 and any(s in body for s in secrets - asked):
                    leaks.append((method, address.route, code))
                if code < 300 and asked & secrets and method == "get":
                    leaks.append((method, address.route, code))
    assert leaks == []
    assert faults == []
    after = rows_of(sides.theirs)
    assert {t: after[t] for t in after if after[t] != before.get(t)} == {}


@pytest.mark.slow
def test_unknown_and_foreign_are_the_same_404(sides: Sides) -> None:
    client = Client(headers={"Authorization": f"Bearer {sides.key}"})
    foreign = Goal.objects.filter(project=sides.theirs)[0]
    told = [
        client.get(f"/api/v1/goals/{name}")
        for name in (foreign.correlation_id, "nobody", foreign.pk)
    ]
    assert {answer.status_code for answer in told} == {404}
    assert len({answer.content for answer in told}) == 1


@pytest.mark.slow
def test_a_person_cannot_choose_a_project_that_is_not_theirs(sides: Sides) -> None:
    client = Client()
    client.force_login(sides.user)
    client.post("/project/", {"project": WORD})
    assert "Mine" in client.get("/").content.decode()
    assert client.session.get("project") != WORD

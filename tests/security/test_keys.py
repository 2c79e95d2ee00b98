"""Keys against every endpoint: S1 to S4."""

from collections.abc import Iterator
from datetime import timedelta
from time import monotonic
from typing import Any

import pytest
from django.test import Client

from diagnostics import clock
from diagnostics.accounts import authentication
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.authentication import ApiKeyAuthentication
from diagnostics.accounts.models import ApiKey, Project
from diagnostics.accounts.projects import issue_key, revoke_key
from tests.security.addresses import METHODS, Address, all_addresses

pytestmark = pytest.mark.django_db
REFUSED = {401, 403}
NOTHING = "00000000-0000-4000-8000-000000000000"


@pytest.fixture(autouse=True)
def _fresh_process() -> Iterator[None]:
    authentication.forget_all()
    yield
    authentication.forget_all()


@pytest.fixture
def project() -> Project:
    return Project.objects.create(slug="p", name="P")


def is_keyed(address: Address) -> bool:
    classes: Any = getattr(view_of(address), "authentication_classes", ())
    return ApiKeyAuthentication in classes


def view_of(address: Address) -> Any:
    """Give the class of a view, of Django's or of the REST framework's making."""
    return getattr(address.view, "view_class", None) or getattr(address.view, "cls", None)


def keyed() -> list[Address]:
    return [address for address in all_addresses() if is_keyed(address)]


def send(address: Address, method: str, key: str | None) -> int:
    """Ask with nothing in the body; ids are ones that nobody has."""
    values = {name: written_value(address, name) for name in address.names}
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    call = getattr(Client(raise_request_exception=False), method)
    return int(call(address.path(**values), headers=headers).status_code)


def written_value(address: Address, name: str) -> str:
    return "999999" if f"<int:{name}>" in address.route else NOTHING


def test_the_walk_finds_the_api() -> None:
    routes = {address.route for address in keyed()}
    assert {"api/v1/events", "api/v1/goals", "api/v1/outcomes"} <= routes
    assert len(routes) > 20


def test_every_address_below_api_v1_and_v1_needs_a_key() -> None:
    found = [a for a in all_addresses() if a.route.startswith(("api/v1", "v1/"))]
    assert [address.route for address in found if not is_keyed(address)] == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["none", "unknown", "wrong", "revoked", "expired"])
def test_s1_to_s4_a_key_that_is_none_opens_nothing(project: Project, kind: str) -> None:
    key = make_key(project, kind)
    answers = {
        (address.route, method): send(address, method, key)
        for address in keyed()
        for method in METHODS
    }
    assert {where: got for where, got in answers.items() if got != 401} == {}


def make_key(project: Project, kind: str) -> str | None:
    ended = clock.now() - timedelta(seconds=1) if kind == "expired" else None
    issued = issue_key(project, kind, [Scope.ADMIN], ended)
    if kind == "none":
        return None
    if kind == "revoked":
        revoke_key(issued.row, "a test")
    if kind == "wrong":
        return issued.text[:-4] + "AAAA"
    if kind == "unknown":
        return f"fs_{'0' * 12}_{issued.text.rsplit('_', 1)[1][:43].ljust(43, 'a')}"
    return issued.text


@pytest.mark.parametrize("scope", [Scope.INGEST, Scope.READ])
def test_s1_to_s4_a_key_does_what_its_scope_says(project: Project, scope: Scope) -> None:
    key = issue_key(project, "k", [scope]).text
    wrong = {}
    for address in keyed():
        view = view_of(address)
        for method in ("get", "post", "put", "patch", "delete"):
            if not hasattr(view, method):
                continue
            wanted = view.required_scopes.get(method.upper(), Scope.ADMIN)
            got = send(address, method, key)
            if (got in REFUSED) is (wanted in (scope, None)):
                wrong[address.route, method] = got
    assert wrong == {}


def test_s1_to_s4_two_keys_overlap_while_they_are_changed(project: Project) -> None:
    old, new = (issue_key(project, name, [Scope.READ]) for name in ("old", "new"))
    assert [ask(key.text) for key in (old, new)] == [200, 200]
    revoke_key(old.row, "a test")
    assert [ask(key.text) for key in (old, new)] == [401, 200]


def ask(key: str, **headers: str) -> int:
    told = {"Authorization": f"Bearer {key}", **headers}
    return Client().get("/api/v1/events", headers=told).status_code


def test_s1_to_s4_a_key_revoked_elsewhere_is_refused_within_five_seconds(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    issued = issue_key(project, "k", [Scope.READ])
    assert ask(issued.text) == 200
    # Another process revokes: this one's memory is not told.
    ApiKey.objects.update(revoked_at=clock.now())
    begun = monotonic()
    monkeypatch.setattr(authentication, "monotonic", lambda: begun + 4.9)
    assert ask(issued.text) == 401


def test_s1_to_s4_a_key_expires_between_two_looks_at_it(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = clock.now() + timedelta(seconds=2)
    issued = issue_key(project, "k", [Scope.READ], ends)
    assert ask(issued.text) == 200
    begun = monotonic()
    monkeypatch.setattr(authentication, "monotonic", lambda: begun + 3)
    assert ask(issued.text) == 401


@pytest.mark.parametrize("where", ["key", "api_key", "access_token", "token"])
def test_s1_to_s4_a_key_in_the_address_is_not_read(project: Project, where: str) -> None:
    key = issue_key(project, "k", [Scope.ADMIN]).text
    assert Client().get("/api/v1/events", {where: key}).status_code == 401

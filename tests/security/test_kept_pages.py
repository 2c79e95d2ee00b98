"""What no cache may keep: every answer behind the sign-in, whoever wrote its view."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.test import Client

from diagnostics.accounts import authentication
from diagnostics.accounts.models import Project
from tests.console import Role, make_member
from tests.security.addresses import all_addresses
from tests.security.test_roles import value_of

pytestmark = pytest.mark.django_db
# Asked by programs, which name no person.
FOR_PROGRAMS = ("api/v1/", "v1/", "mcp", "opentelemetry.")


@pytest.fixture
def person() -> Iterator[Client]:
    authentication.forget_all()
    project = Project.objects.create(slug="p", name="P")
    client = Client(raise_request_exception=False)
    client.force_login(make_member(project, "eva", Role.ADMIN))
    yield client
    authentication.forget_all()


def is_private(answer: Any) -> bool:
    said = answer.headers.get("Cache-Control", "")
    return "private" in said or "no-store" in said


@pytest.mark.slow
def test_no_cache_shared_or_of_a_browser_keeps_what_a_member_was_shown(person: Client) -> None:
    project = Project.objects.get(slug="p")
    asked: dict[str, Any] = {}
    for address in all_addresses():
        if address.route.startswith((*FOR_PROGRAMS, "admin/")):
            continue
        values = {name: value_of(address.route, name, project) for name in address.names}
        asked[address.route] = person.get(address.path(**values))
    assert len(asked) > 150
    assert [route for route, answer in asked.items() if not is_private(answer)] == []


@pytest.mark.parametrize(
    "page", ["/accounts/2fa/", "/accounts/email/", "/accounts/sessions/", "/help/patterns/"]
)
def test_pages_of_sign_in_are_kept_no_more_than_ours(person: Client, page: str) -> None:
    assert is_private(person.get(page))

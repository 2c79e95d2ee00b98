"""The audit log as a person reads it."""

import pytest
from django.test import Client

from diagnostics.accounts.audit_log import note
from diagnostics.accounts.models import Membership, Project
from failsoft.json_values import JSON
from tests.console import make_member

pytestmark = pytest.mark.django_db


def test_details_are_words_without_brackets_quotes_and_none(client: Client) -> None:
    project = Project.objects.create(slug="p1", name="P1")
    admin = make_member(project, role=Membership.Role.ADMIN)
    client.force_login(admin)
    details: dict[str, JSON] = {
        "scopes": ["ingest", "read"],
        "rule": None,
        "is_latching": False,
        "routing": [],
        "parameters": {"limit": 0.05},
    }
    note(project.pk, admin, "key.created", "the agent", details)
    _, found = client.get("/settings/audit/").context["lines"][0]
    assert dict(found) == {
        "scopes": "ingest, read",
        "rule": "none",
        "is_latching": "no",
        "routing": "none",
        "parameters": "limit 0.05",
    }

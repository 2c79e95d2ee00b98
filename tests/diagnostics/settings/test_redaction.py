"""The redaction page: rules are tried, saved or refused, switched, and applied again."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from diagnostics.accounts.models import Membership, Project
from diagnostics.redaction.rules import RedactionRule, Rescrub
from failsoft.redaction import re2_search

pytestmark = pytest.mark.django_db
RULE = {"name": "customers", "kind": "customer", "pattern": "CUST-[0-9]+"}


def sign_in(client: Client, role: str) -> Project:
    project = Project.objects.create(slug="p1", name="P1")
    user = User.objects.create_user("anna")
    Membership.objects.create(project=project, user=user, role=role)
    client.force_login(user)
    return project


def test_a_pattern_is_tried_on_a_text_and_not_saved(client: Client) -> None:
    sign_in(client, "admin")
    tried = {**RULE, "text": "for CUST-77 <b>", "try": "1"}
    page = client.post("/settings/redaction/", tried).content.decode()
    assert "for <mark>[REDACTED:customer]</mark> &lt;b&gt;" in page
    assert "1 match:" in page
    assert not RedactionRule.objects.exists()


def test_a_pattern_that_is_too_slow_for_a_text_is_named_so(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    sign_in(client, "admin")
    # No machine is as fast as this.
    monkeypatch.setattr(re2_search, "BYTE_SECONDS", 1e-9)
    monkeypatch.setattr(re2_search, "START_SECONDS", 1e-3)
    slow = {**RULE, "pattern": "(?s).*q|1", "text": "1" * 16_384, "try": "1"}
    page = client.post("/settings/redaction/", slow).content.decode()
    assert "Too slow: the text would be replaced by [REDACTION_FAILED]." in page
    assert "No match" not in page


def test_a_rule_is_saved_once_and_switched(client: Client) -> None:
    project = sign_in(client, "admin")
    assert client.post("/settings/redaction/", RULE).status_code == 302
    again = client.post("/settings/redaction/", RULE).content.decode()
    assert "A rule with this name exists." in again
    rule = RedactionRule.objects.get(project=project)
    assert (rule.pattern, rule.enabled) == ("CUST-[0-9]+", True)
    page = client.get("/settings/redaction/").content.decode()
    sent = dict(re.findall(r'name="(enabled)" value="([^"]*)">Disable<', page))
    # The second press is of a page that is out of date.
    for _ in range(2):
        client.post(f"/settings/redaction/{rule.pk}/switch/", sent)
        rule.refresh_from_db()
        assert not rule.enabled
    assert 'value="1">Enable<' in client.get("/settings/redaction/").content.decode()


def test_what_re2_refuses_is_refused_with_its_message(client: Client) -> None:
    sign_in(client, "admin")
    page = client.post("/settings/redaction/", {**RULE, "pattern": "(a"})
    assert "Missing" in page.content.decode()
    page = client.post("/settings/redaction/", {**RULE, "kind": "Two Words"})
    assert "1 to 40 of" in page.content.decode()
    assert not RedactionRule.objects.exists()


def test_redacting_again_is_asked_for_once_and_its_progress_shown(client: Client) -> None:
    project = sign_in(client, "admin")
    for _ in range(2):
        client.post("/settings/redaction/again/")
    assert Rescrub.objects.filter(project=project).count() == 1
    assert "Running: part 1 of" in client.get("/settings/redaction/").content.decode()


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_others_than_administrators_only_look(client: Client, role: str) -> None:
    project = sign_in(client, role)
    rule = RedactionRule.objects.create(project=project, **RULE)
    assert client.get("/settings/redaction/").status_code == 200
    for path in ("", "again/", f"{rule.pk}/switch/"):
        assert client.post(f"/settings/redaction/{path}", RULE).status_code == 403


def test_a_rule_of_another_project_is_not_found(client: Client) -> None:
    sign_in(client, "admin")
    other = Project.objects.create(slug="p2", name="P2")
    rule = RedactionRule.objects.create(project=other, **RULE)
    assert client.post(f"/settings/redaction/{rule.pk}/switch/").status_code == 404

"""The page of fix patterns: what was learned, with and without, decided by hand."""

import pytest
from django.test import Client

from agents.fix_patterns.models import FixPolicy
from diagnostics.accounts.models import Project
from diagnostics.figures import THIN
from tests.agents.console.conftest import Read
from tests.agents.test_api_fix_patterns import make_pattern
from tests.console import Role, make_member


def test_patterns_are_shown_with_what_they_are_worth(project: Project, read: Read) -> None:
    make_pattern(project, told_runs=20, told_good=18, withheld_runs=5, withheld_good=1)
    make_pattern(project, code="step_id_missing", pointer="/steps/*/step_id", successes=2)

    page = read("/fix-patterns/").replace(THIN, " ")

    assert "1 of 2 active" in page
    assert "<code>steps[*].tool</code> is never left out: it is an object." in page
    assert "18 of 20 · 90 % (70 % to 97 %)" in page
    assert "1 of 5 · 20 % (4 % to 62 %)" in page
    assert "of 3 needed" in page


@pytest.mark.parametrize(("verb", "decision"), [("approve", "approved"), ("reject", "rejected")])
def test_an_operator_decides(project: Project, client: Client, verb: str, decision: str) -> None:
    row = make_pattern(project)

    answer = client.post(f"/fix-patterns/{row.pk}/{verb}/")

    row.refresh_from_db()
    assert answer["Location"] == "/fix-patterns/"
    assert (row.decision, row.decided_by) == (decision, "ann")


def test_an_operator_expires_a_pattern_but_does_not_set_the_policy(
    project: Project, client: Client, read: Read
) -> None:
    row = make_pattern(project)

    client.post(f"/fix-patterns/{row.pk}/expire/")
    refused = client.post("/fix-patterns/policy/", {"mode": "approve"})

    page = read("/fix-patterns/")
    assert refused.status_code == 403
    assert "expired" in page
    assert "Policy: auto" in page
    assert "/fix-patterns/policy/" not in page


def test_an_administrator_sets_the_policy(project: Project, client: Client, read: Read) -> None:
    client.force_login(make_member(project, "eva", Role.ADMIN))

    client.post("/fix-patterns/policy/", {"mode": "approve"})
    client.post("/fix-patterns/policy/", {"mode": "sometimes"})

    page = read("/fix-patterns/")
    assert "Policy: approve" in page
    assert "Choose off, auto or approve." in page


def test_a_viewer_looks_and_another_project_sees_nothing(project: Project, client: Client) -> None:
    row = make_pattern(project)
    client.force_login(make_member(project, "vic", Role.VIEWER))
    page = client.get("/fix-patterns/").content.decode()
    assert "steps[*].tool" in page
    assert "Approve" not in page
    assert client.post(f"/fix-patterns/{row.pk}/reject/").status_code == 403
    assert client.post("/fix-patterns/policy/", {"mode": "off"}).status_code == 403
    assert not FixPolicy.objects.exists()

    other = Project.objects.create(slug="other", name="Other")
    client.force_login(make_member(other, "eve"))
    assert "steps[*].tool" not in client.get("/fix-patterns/").content.decode()
    assert client.post(f"/fix-patterns/{row.pk}/reject/").status_code == 404


def test_the_empty_page_says_what_would_fill_it(project: Project, read: Read) -> None:
    page = read("/fix-patterns/")

    assert "No fix patterns yet." in page
    assert "/api/v1/goals" in page

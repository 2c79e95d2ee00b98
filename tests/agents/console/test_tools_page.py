"""The tools page: what can be called, where it comes from, what the project allows."""

from typing import Any

import pytest
from django.test import Client

from agents.console.tools_page import tool_use
from diagnostics.accounts.models import AuditEntry, Membership, Project
from plans.models.run import RunStep
from plans.models.tool import McpServer, McpTool
from plans.runs.running import execute_run
from plans.runs.submission import submit_run
from plans.tools.registry import denied_tools
from tests.agents.console.conftest import Read


@pytest.fixture
def admin(project: Project, client: Client) -> Client:
    Membership.objects.update(role="admin")
    return client


def test_tools_are_shown_with_what_they_take(project: Project, read: Read) -> None:
    html = read("/tools/")
    assert "http_get" in html
    assert "Fetch a public URL" in html
    assert "<code>template, values?</code>" in html
    assert "Deny" not in html


def test_calls_of_tools_are_counted_and_one_that_is_gone_is_named(
    project: Project, read: Read
) -> None:
    assert "Tool calls" not in read("/tools/")
    steps = [
        {"step_id": f"s{at}", "title": "", "tool": {"name": name, "args": {}}}
        for at, name in enumerate(("echo", "echo", "fail"))
    ]
    run = submit_run(project.pk, {"steps": steps}, "mine")
    execute_run(run.pk)
    found = {use["name"]: (use["calls"], use["failed"]) for use in tool_use(project.pk)}
    assert found == {"fail": (1, 1), "echo": (2, 0)}
    RunStep.objects.filter(run=run, tool="fail").update(tool="mail.gone")
    html = read("/tools/")
    assert html.index("mail.gone") < html.index("Available tools")
    assert html.count("not registered") == 1


def test_the_health_of_mcp_servers_is_shown(project: Project, read: Read, settings: Any) -> None:
    settings.FAILSOFT_MCP_SERVERS = {"shop": {"command": "x"}, "new": {"command": "x"}}
    server = McpServer.objects.create(
        name="shop", transport="stdio", last_error="no <b>licence</b>"
    )
    McpTool.objects.create(
        server=server,
        name="shop.order",
        remote_name="order",
        description="Order <script>",
        input_schema={"type": "object", "properties": {"<i>": {}}},
        digest="",
    )
    html = read("/tools/")
    assert "failing" in html
    assert "no &lt;b&gt;licence&lt;/b&gt;" in html
    assert "not asked yet" in html
    assert "changes things" in html
    assert "Order &lt;script&gt;" in html


def test_an_admin_of_the_project_denies_and_allows(
    project: Project, admin: Client, read: Read
) -> None:
    admin.post("/tools/allow/", {"tool": "echo", "allowed": "no"})
    assert denied_tools(project.pk) == {"echo"}
    assert "echo is not called any more in this project." in read("/tools/")
    admin.post("/tools/allow/", {"tool": "echo", "allowed": "yes"})
    assert denied_tools(project.pk) == frozenset()
    assert admin.post("/tools/allow/", {"tool": "nobody"}).status_code == 404
    entries = AuditEntry.objects.filter(action__startswith="tool.").order_by("number")
    noted = entries.values_list("actor", "action", "target")
    assert list(noted) == [("ann", "tool.denied", "echo"), ("ann", "tool.allowed", "echo")]


def test_operators_and_viewers_only_look(project: Project, client: Client) -> None:
    for role in ("operator", "viewer"):
        Membership.objects.update(role=role)
        answer = client.post("/tools/allow/", {"tool": "echo", "allowed": "no"})
        assert answer.status_code == 403
    assert denied_tools(project.pk) == frozenset()

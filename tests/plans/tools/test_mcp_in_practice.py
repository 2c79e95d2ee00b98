"""Servers as people run them: sessions that end, refusals of HTTP, careless answers."""

import asyncio
import json
import socket
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random
from typing import Any

import pytest

from failsoft.plans.execution import CallContext, ToolRefusedError, ToolTimeoutError
from plans.models.tool import McpServer
from plans.tools.mcp import calling, connections
from plans.tools.mcp.calling import RemoteToolError, text_of
from plans.tools.mcp.discovery import discover_server
from plans.tools.mcp.health import RemoteTool, configured_servers
from plans.tools.registry import call_tool, registered_tools
from tests.failsoft.redaction.made_up import make
from tests.plans.tools.servers.scripted import Script, Site, serving, text, tool

pytestmark = pytest.mark.django_db
PROGRAM = str(Path(__file__).parent / "servers" / "scripted.py")
EFFECT = tool("order", annotations={})
TOOLS, RESULTS = [tool("ask"), EFFECT], {"ask": text("yes"), "order": text("done")}


@pytest.fixture(autouse=True)
def _end_of_servers() -> Iterator[None]:
    yield
    for connection in connections._process()._connections.values():
        connection.close()
    connections._process()._connections.clear()


@pytest.fixture
def site(settings: Any) -> Iterator[Site]:
    """A server at an address, discovered as `web`."""
    with serving(Script(list(TOOLS), dict(RESULTS))) as it:
        settings.FAILSOFT_MCP_SERVERS = {"web": {"url": it.url, "allow_private": True}}
        assert discover_server("web").error == ""
        yield it


def output(name: str, **context: Any) -> Any:
    return call_tool(name, {}, CallContext(**context))


def reason(name: str) -> tuple[str, str]:
    with pytest.raises(ToolRefusedError) as refused:
        output(name)
    return refused.value.reason, str(refused.value)


def body(**error: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **error}).encode()


GONE = {"code": -32600, "message": "Session not found"}


@pytest.mark.parametrize(
    ("status", "content"),
    [
        pytest.param(404, b"", id="empty"),
        pytest.param(404, b"Not Found: Session not found", id="Rust and Go"),
        pytest.param(404, body(id="server-error", error=GONE), id="Python"),
        pytest.param(404, body(id=None, error={**GONE, "code": -32001}), id="TypeScript"),
        pytest.param(400, body(error={**GONE, "code": -32000}), id="the example server"),
    ],
)
def test_a_session_that_ended_is_begun_again_however_the_server_says_so(
    site: Site, status: int, content: bytes
) -> None:
    output("web.order")
    site.unknown_session = status, content
    site.sessions[-1] = "forgotten"
    assert output("web.order")["text"] == "done"
    assert site.script.calls() == 2


def test_a_call_that_is_refused_twice_was_not_made(site: Site) -> None:
    output("web.order")
    site.refusals = [(404, b""), (404, b"")]
    assert reason("web.order")[0] == "tool_unavailable"
    assert site.script.calls() == 1


def test_renewed_credentials_are_read_when_the_old_ones_are_refused(
    site: Site, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2):
        site.authorization = f"Bearer {make('{word:20}', Random(number))[0]}"
        monkeypatch.setenv("SITE_KEY", site.authorization)
        if number == 0:
            server = {"url": site.url, "allow_private": True}
            secret = {"headers": {"Authorization": "env:SITE_KEY"}}
            settings.FAILSOFT_MCP_SERVERS = {"web": {**server, **secret}}
        assert output("web.order")["text"] == "done"
    site.authorization = "Bearer another"
    refused = reason("web.order")
    assert refused[0] == "tool_unavailable"
    assert "HTTP 401 Unauthorized" in refused[1]
    assert "HTTP 401 Unauthorized" in discover_server("web").error


@pytest.mark.parametrize(
    ("status", "content", "named"),
    [
        (502, b"<html>Bad Gateway</html>", "HTTP 502 Bad Gateway"),
        (500, body(id=None, error={"code": -32603, "message": "oops"}), "oops"),
    ],
)
def test_the_effect_of_a_call_that_ended_in_an_error_of_http_is_unknown(
    site: Site, status: int, content: bytes, named: str
) -> None:
    site.refusals = [(status, content)]
    unknown, told = reason("web.order")
    assert unknown == "unknown_outcome"
    assert named in told
    site.refusals = [(status, content)]
    assert reason("web.ask")[0] == "tool_unavailable"
    assert output("web.ask")["text"] == "yes"


def test_too_many_requests_are_not_answered_with_more_of_them(site: Site) -> None:
    output("web.order")
    heard = len(site.script.messages)
    site.refusals = [(429, b"slow down")]
    refused, told = reason("web.order")
    assert refused == "tool_unavailable"
    assert "HTTP 429 Too Many Requests: slow down" in told
    assert len(site.script.messages) == heard


def test_an_error_that_answers_a_call_is_the_tools_whatever_its_status(site: Site) -> None:
    output("web.ask")
    asked = site.script.messages[-1]["id"]
    error = {"code": -32602, "message": "no such customer"}
    site.refusals = [(400, body(id=asked + 1, error=error))]
    with pytest.raises(RemoteToolError, match="no such customer"):
        output("web.ask")


def test_a_call_to_a_server_that_is_down_was_not_made(settings: Any) -> None:
    with serving(Script(list(TOOLS), dict(RESULTS))) as it:
        settings.FAILSOFT_MCP_SERVERS = {"web": {"url": it.url, "allow_private": True}}
        assert discover_server("web").error == ""
        output("web.order")
        it.refusals = [(404, b"")]
    assert reason("web.order")[0] == "tool_unavailable"


def test_a_long_answer_in_a_stream_of_events_is_read(site: Site) -> None:
    site.streams = True
    site.script.results["ask"] = text("x" * (3 << 19))
    assert len(output("web.ask")["text"]) == (1 << 20) + 1


@pytest.mark.parametrize("packs", [False, True])
def test_an_answer_that_is_too_large_ends_no_other_call(site: Site, packs: bool) -> None:
    site.packs = packs
    site.script.results["ask"] = text("x" * (5 << 20))
    with pytest.raises(RemoteToolError, match="more than 4194304 bytes"):
        output("web.ask")
    assert output("web.order")["text"] == "done"
    assert len(site.sessions) == 2, "one to discover, one for both calls"


FILE = {"uri": "file:///readme.md", "mimeType": "text/markdown", "text": "# Read me"}
LINK = {"type": "resource_link", "uri": "https://example.org/report", "name": "report"}


def test_the_text_of_a_file_in_an_answer_is_not_lost(site: Site) -> None:
    found = {"type": "text", "text": "downloaded (SHA: 1)"}
    site.script.results["ask"] = {"content": [found, {"type": "resource", "resource": FILE}, LINK]}
    told = output("web.ask")
    assert told["text"] == "downloaded (SHA: 1)\n# Read me"
    assert [item["uri"] for item in told["attachments"]] == [FILE["uri"], LINK["uri"]]


OUTPUT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.mark.parametrize(
    ("schema", "result", "expected"),
    [
        pytest.param(OUTPUT, text("7"), ("7", None), id="without structure"),
        pytest.param(
            OUTPUT, text("7", structuredContent={"n": "7"}), ("7", {"n": "7"}), id="other"
        ),
        pytest.param({"$ref": "#/$defs/Gone"}, text("7"), ("7", None), id="dangling"),
        pytest.param({"type": "array"}, text("7"), ("7", None), id="not an object"),
        pytest.param(OUTPUT, {"structuredContent": {"n": 7}}, ("", {"n": 7}), id="without text"),
        pytest.param(None, {"content": None, "isError": False}, ("", None), id="null"),
    ],
)
def test_a_result_is_taken_although_it_is_not_what_its_server_promised(
    site: Site, schema: Any, result: dict[str, Any], expected: tuple[Any, Any]
) -> None:
    site.script.tools[0] = tool("ask", outputSchema=schema)
    site.script.results["ask"] = result
    assert discover_server("web").error == ""
    told = output("web.ask")
    assert (told["text"], told["structured"]) == expected


@pytest.mark.parametrize(
    "schema",
    [
        None,
        {},
        {"$schema": "http://json-schema.org/draft-07/schema#"},
        {"type": "object", "properties": []},
        {"anyOf": [{"type": "object"}]},
        {"type": ["object", "null"]},
    ],
)
def test_an_incomplete_schema_hides_neither_its_tool_nor_others(site: Site, schema: Any) -> None:
    site.script.tools[0] = tool("ask", inputSchema=schema, title=3, icons=[{}])
    found = discover_server("web")
    assert (found.error, found.left_out) == ("", {})
    assert registered_tools()["web.ask"].schema()["type"] == "object"
    assert output("web.ask")["text"] == "yes"


def test_a_schema_that_cannot_be_read_hides_its_tool_alone(site: Site) -> None:
    site.script.tools[0] = tool("ask", inputSchema={"type": "object", "required": "name"})
    found = discover_server("web")
    assert (found.error, list(found.tools)) == ("", ["web.order"])
    assert "ask: its schema is not a JSON Schema" in McpServer.objects.get().last_error


@pytest.mark.parametrize("cursor", ["", "more"])
def test_a_cursor_that_leads_nowhere_is_followed_once(site: Site, cursor: str) -> None:
    site.script.page = {"nextCursor": cursor}
    before = len(site.script.messages)
    assert list(discover_server("web").tools) == ["web.ask", "web.order"]
    heard = [message.get("method") for message in site.script.messages[before:]]
    assert heard.count("tools/list") == 2


@pytest.mark.parametrize(
    ("script", "protocol"),
    [
        pytest.param({"early": "ends"}, "2025-06-18", id="ends at another message"),
        pytest.param({"early": "silence"}, "2025-06-18", id="does not answer another message"),
        pytest.param({"is_modern": True}, "2026-07-28", id="does not know initialize"),
        pytest.param({"says": "Server 1.0 is listening\n\n{}\n"}, "2025-06-18", id="talks"),
        pytest.param(
            {"starts_after": 21}, "2025-06-18", id="starts slowly", marks=pytest.mark.slow
        ),
    ],
)
def test_a_program_is_called_whichever_beginning_it_wants(
    settings: Any, script: dict[str, Any], protocol: str
) -> None:
    seconds = 60 if "starts_after" in script else 8
    program = {"command": sys.executable, "args": [PROGRAM, json.dumps(script)]}
    settings.FAILSOFT_MCP_SERVERS = {"tool": {**program, "timeout_seconds": seconds}}
    assert discover_server("tool").error == ""
    assert McpServer.objects.get().protocol_version == protocol
    for _ in range(2):
        assert output("tool.ask")["text"] == "yes"
    assert len(connections._process()._connections) == 1
    assert not connections._process()._connections["tool"].is_over


def test_a_call_that_takes_too_long_ends_no_other_call(site: Site, settings: Any) -> None:
    site.script.delays = {"ask": 1.5, "order": 1.5}
    patient = settings.FAILSOFT_MCP_SERVERS["web"]
    impatient = {**patient, "tools": {"ask": {"timeout_seconds": 0.5}}}
    settings.FAILSOFT_MCP_SERVERS = {"web": impatient}
    server = configured_servers()["web"]
    connection = connections.wait_for(connections.connect("web", server), 30, lambda: False)
    with ThreadPoolExecutor(1) as pool:
        work = connection.call("order", {}, {})
        order = pool.submit(connections.wait_for, work, 10, lambda: False)
        with pytest.raises(ToolTimeoutError):
            output("web.ask")
        assert text_of(order.result().content) == "done"
    again = connections.wait_for(connections.connect("web", server), 30, lambda: False)
    assert again is not connection


PROSE = {"description": "Since when; today is {}", "default": "{}", "title": "{}"}


def described(day: str, kind: str = "string", **fields: Any) -> dict[str, Any]:
    since = {"type": kind, **{key: told.format(day) for key, told in PROSE.items()}}
    properties = {"since": since, "description": {"type": "string"}, **fields}
    return tool("ask", inputSchema={"type": "object", "properties": properties})


def test_a_schema_with_other_words_is_the_same_and_one_with_other_arguments_is_not(
    site: Site,
) -> None:
    site.script.tools[0] = described("Monday")
    assert discover_server("web").error == ""
    site.script.tools[0] = described("Tuesday")
    assert output("web.ask")["text"] == "yes"
    for changed in (described("Monday", "integer"), described("Monday", title={"type": "string"})):
        connections._process()._connections["web"].close()
        site.script.tools[0] = changed
        assert reason("web.ask")[0] == "tool_changed"


def test_a_tool_that_runs_only_as_a_task_is_not_offered(site: Site) -> None:
    site.script.tools[0] = tool("ask", execution={"taskSupport": "required"})
    found = discover_server("web")
    assert found.left_out == {"ask": "it can only run as a task, which is not supported"}
    assert list(found.tools) == ["web.order"]


@pytest.mark.parametrize("order", [("::1", "127.0.0.1"), ("127.0.0.1", "::1")])
def test_a_server_on_one_of_the_addresses_of_its_name_is_found(
    site: Site, settings: Any, monkeypatch: pytest.MonkeyPatch, order: tuple[str, str]
) -> None:
    found = [(0, 0, 0, "", (address, 0)) for address in order]
    look_up = socket.getaddrinfo
    monkeypatch.setattr(
        socket, "getaddrinfo", lambda *a, **k: found if a[0] == "localhost" else look_up(*a, **k)
    )
    url = site.url.replace("127.0.0.1", "localhost")
    settings.FAILSOFT_MCP_SERVERS = {"web": {"url": url, "allow_private": True}}
    for _ in range(3):
        assert discover_server("web").error == ""


def test_a_call_on_a_connection_that_another_call_ended_is_made_on_a_new_one(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    check, closed = calling._check_tool, list[connections.Connection]()

    def close_first(remote: RemoteTool, connection: connections.Connection) -> None:
        check(remote, connection)
        if not closed:
            closed.append(connection)
            connection.close()
            connections.wait_for(asyncio.sleep(0.5), 5, lambda: False)

    monkeypatch.setattr(calling, "_check_tool", close_first)
    assert output("web.order")["text"] == "done"
    assert site.script.calls() == 1


def test_tools_beyond_the_most_are_named(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "MAX_TOOLS", 1)
    found = discover_server("web")
    assert list(found.tools) == ["web.ask"]
    assert found.left_out == {"order": "only the first 1 tools are used"}

"""Tools of real MCP servers: a program over stdio, and streamable HTTP on loopback."""

import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from django.apps import apps

from agents.goals.models import Goal
from agents.goals.policies import offers_for
from diagnostics.accounts.models import Project
from diagnostics.redaction.redactor import redact
from failsoft.plans.execution import (
    CallContext,
    ToolArgumentsError,
    ToolNotFoundError,
    ToolRefusedError,
    ToolTimeoutError,
)
from plans.models.tool import McpServer, McpTool
from plans.tools.mcp import connections, health
from plans.tools.mcp.calling import RemoteToolError
from plans.tools.mcp.discovery import discover_server
from plans.tools.registry import call_tool, find_tool, offered_tools, registered_tools
from tests.failsoft.redaction.made_up import make
from tests.plans.driving import run_through
from tests.sinks import dripping_sink

pytestmark = pytest.mark.django_db
SHOP = str(Path(__file__).parent / "servers" / "shop.py")
PROGRAM: dict[str, Any] = {
    "command": sys.executable,
    "args": [SHOP],
    "env": {"SHOP_TOKEN": "env:SHOP"},
}
Configure = Callable[..., None]


@pytest.fixture(scope="module", autouse=True)
def _end_of_servers() -> Iterator[None]:
    yield
    for connection in connections._process()._connections.values():
        connection.close()


@pytest.fixture
def configure(settings: Any, monkeypatch: pytest.MonkeyPatch) -> Configure:
    """Configure servers; what a server is asked first takes its start."""
    monkeypatch.setenv("SHOP", make("{word:20}", Random(8))[0])

    def set_servers(**servers: Any) -> None:
        settings.FAILSOFT_MCP_SERVERS = servers

    return set_servers


_discovered: list[McpTool] = []


@pytest.fixture
def shop(configure: Configure) -> None:
    """The shop over stdio, discovered: once, since a program takes a while to start."""
    configure(shop=PROGRAM)
    if not _discovered:
        assert discover_server("shop").error == ""
        _discovered.extend(McpTool.objects.all())
    else:
        server = McpServer.objects.create(name="shop", transport="stdio")
        for tool in _discovered:
            tool.pk, tool.server = None, server
        McpTool.objects.bulk_create(_discovered)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The shop over HTTP."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, SHOP, str(port)]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    try:
        _await_port(port)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


def _await_port(port: int) -> None:
    for _ in range(400):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    pytest.fail("the server did not start")


def refusal(name: str, args: dict[str, Any], **context: Any) -> ToolRefusedError:
    with pytest.raises(ToolRefusedError) as refused:
        call_tool(name, args, CallContext(**context))
    return refused.value


def test_tools_are_discovered_called_and_checked(shop: None) -> None:
    tool = registered_tools()["shop.add"]
    assert tool.schema()["required"] == ["a", "b"]
    assert (tool.side_effects, tool.idempotent) == (False, True)
    assert "shop.add" in [offered.name for offered in offered_tools()]

    assert call_tool("shop.add", {"a": 1, "b": 2}) == {
        "text": "3",
        "structured": {"result": 3},
        "attachments": [],
    }
    assert call_tool("shop__add", {"a": 1, "b": 2}) == call_tool("shop.add", {"a": 1, "b": 2})
    with pytest.raises(ToolArgumentsError, match='"a": expected integer, got string'):
        call_tool("shop.add", {"a": "many", "b": 2})
    with pytest.raises(ToolNotFoundError):
        call_tool("shop.subtract", {})


def test_what_a_server_wrote_is_stored_whatever_its_characters(shop: None) -> None:
    registered_tools()
    health.note_fault("shop", "it wrote: odd\x00name")
    assert McpServer.objects.get(name="shop").last_error == "it wrote: odd\ufffdname"


def test_a_character_that_cannot_be_stored_hides_no_other_tool(shop: None) -> None:
    schema = registered_tools()["shop.odd"].schema()
    assert schema["properties"]["text"]["description"] == "not\ufffdstorable"
    assert not [name for name in registered_tools() if "odd" in name and name != "shop.odd"]


def test_a_plan_calls_a_server_whichever_runner_executes_it(shop: None, project: Project) -> None:
    steps = [
        {"step_id": "step_1", "tool": {"name": "shop.add", "args": {"a": 1, "b": 2}}},
        {
            "step_id": "step_2",
            "dependencies": ["step_1"],
            "tool": {
                "name": "shop__add",
                "args": {"a": "$step_1.output.structured.result", "b": 4},
            },
        },
    ]
    for runner in ("inline", "distributed"):
        run = run_through(project.pk, {"steps": steps}, runner)
        assert run.task_status == "COMPLETED"
        assert run.tool_digests == {}
        assert run.steps.get(position=1).output["text"] == "7"


def test_a_tool_with_two_underscores_in_its_name_is_found_by_each_of_its_names(
    configure: Configure,
) -> None:
    configure(shop=PROGRAM)
    server = McpServer.objects.create(name="shop", transport="stdio")
    McpTool.objects.create(
        server=server, name="shop.look__up", remote_name="look__up", input_schema={}, digest=""
    )
    for name in ("shop.look__up", "shop__look__up"):
        tool = find_tool(name)
        assert tool is not None
        assert tool.name == "shop.look__up"


def test_a_tool_without_hints_is_taken_for_the_worst(shop: None) -> None:
    tool = registered_tools()["shop.order"]
    assert (tool.side_effects, tool.idempotent) == (True, False)


def test_configuration_wins_over_hints(shop: None, configure: Configure) -> None:
    own = {"idempotent": True, "offered": False, "timeout_seconds": 3}
    configure(shop={**PROGRAM, "max_concurrent": 2, "tools": {"order": own}})
    tool = find_tool("shop.order")
    assert tool is not None
    assert (tool.side_effects, tool.idempotent) == (True, True)
    assert tool.timeout_seconds == 3
    assert (tool.max_concurrent, tool.limited_as) == (2, "shop.*")
    assert "shop.order" not in [offered.name for offered in offered_tools()]


def test_an_answer_becomes_the_output_of_a_step(shop: None) -> None:
    output: Any = call_tool("shop.picture", {})
    assert output["text"] == "see\x00 here"
    assert output["attachments"] == [
        {"type": "image", "media_type": "image/png", "bytes": 6, "uri": None}
    ]
    with pytest.raises(RemoteToolError, match="no such customer"):
        call_tool("shop.refuse", {})


def test_the_key_of_a_call_goes_along_and_secrets_do_not(shop: None) -> None:
    key_output: Any = call_tool("shop.tell_key", {}, CallContext(idempotency_key="run:2:1"))
    assert key_output["text"] == "run:2:1"
    output: Any = call_tool("shop.say_secret", {})
    assert output["text"] == f"{make('{word:20}', Random(8))[0]} []"


@pytest.mark.slow
def test_c17_an_effect_without_an_answer_is_an_unknown_outcome(
    shop: None, configure: Configure, tmp_path: Path
) -> None:
    slow = {"order": {"timeout_seconds": 1}, "look": {"timeout_seconds": 1}}
    configure(shop={**PROGRAM, "tools": slow})
    call_tool("shop.add", {"a": 1, "b": 2})
    log = tmp_path / "log"
    hung = refusal("shop.order", {"seconds": 30, "log": str(log)})
    assert (hung.reason, log.read_text()) == ("unknown_outcome", "ordered\n")
    assert "no answer within 1 s" in str(hung)
    call_tool("shop.add", {"a": 1, "b": 2})
    with pytest.raises(ToolTimeoutError):
        call_tool("shop.look", {"seconds": 30})
    call_tool("shop.add", {"a": 1, "b": 2})
    died = refusal("shop.die", {})
    assert died.reason == "unknown_outcome"
    assert "went away" in McpServer.objects.get().last_error or str(died)
    call_tool("shop.add", {"a": 1, "b": 2})
    assert McpServer.objects.get().last_error == ""


def test_an_answer_that_comes_while_it_is_looked_for_is_not_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "_POLL_SECONDS", 0)

    async def answer() -> int:
        return 1

    answers = [connections.wait_for(answer(), 10, lambda: False) for _ in range(2_000)]
    assert sum(answers) == 2_000


def test_a_server_that_one_run_gives_up_while_it_starts_is_there_for_others(
    configure: Configure,
) -> None:
    start = f"import runpy, time; time.sleep(1); runpy.run_path({SHOP!r}, run_name='__main__')"
    configure(**{"late-shop": {**PROGRAM, "args": ["-c", start]}})
    server = health.configured_servers()["late-shop"]
    with pytest.raises(InterruptedError):
        connections.wait_for(connections.connect("late-shop", server), 30, lambda: True)
    connection = connections.wait_for(connections.connect("late-shop", server), 30, lambda: False)
    offer = connections.wait_for(connection.list_offer(), 30, lambda: False)
    assert "add" in [tool.name for tool in offer.tools]


def test_x_6_a_cancelled_run_does_not_wait_for_its_server(shop: None) -> None:
    began = time.monotonic()
    stopped = refusal("shop.look", {"seconds": 30}, is_cancelled=lambda: True)
    assert stopped.reason == "cancelled"
    assert time.monotonic() - began < 10


@pytest.mark.slow
def test_a_changed_schema_is_told_and_renewed(shop: None, configure: Configure) -> None:
    renewed = {**PROGRAM, "env": {**PROGRAM["env"], "SHOP_NEW": "1"}}
    configure(shop=renewed)
    changed = refusal("shop.add", {"a": 1, "b": 2})
    assert changed.reason == "tool_changed"
    output: Any = call_tool("shop.add", {"first": 1, "second": 2})
    assert output["text"] == "3"


@pytest.mark.slow
def test_a_tool_that_changed_under_an_open_connection_is_told_once(
    configure: Configure, tmp_path: Path
) -> None:
    upgrade = tmp_path / "upgrade"
    program = (
        "import os, pathlib, runpy\n"
        f"if pathlib.Path({str(upgrade)!r}).exists(): os.environ['SHOP_NEW'] = '1'\n"
        f"runpy.run_path({SHOP!r}, run_name='__main__')"
    )
    configure(**{"new-shop": {**PROGRAM, "args": ["-c", program]}})
    assert discover_server("new-shop").error == ""
    call_tool("new-shop.add", {"a": 1, "b": 2})
    upgrade.touch()
    assert discover_server("new-shop").error == ""
    assert refusal("new-shop.add", {"first": 1, "second": 2}).reason == "tool_changed"
    output: Any = call_tool("new-shop.add", {"first": 1, "second": 2})
    assert output["text"] == "3"


@pytest.mark.slow
def test_what_a_server_offers_no_more_is_forgotten(shop: None) -> None:
    server = McpServer.objects.get()
    McpTool.objects.create(
        server=server, name="shop.gone", remote_name="gone", input_schema={}, digest=""
    )
    assert refusal("shop.gone", {}).reason == "tool_changed"
    assert not McpTool.objects.filter(name="shop.gone").exists()


def test_streamable_http_is_called_where_private_addresses_are_allowed(
    configure: Configure, address: str
) -> None:
    configure(web={"url": address, "allow_private": True, "tools": {}})
    assert discover_server("web").error == ""
    output: Any = call_tool("web.add", {"a": 2, "b": 2})
    assert output["structured"] == {"result": 4}
    with pytest.raises(RemoteToolError, match="no such customer"):
        call_tool("web.refuse", {})
    row = McpServer.objects.get()
    assert (row.transport, row.server_name, row.server_version) == ("http", "shop", "7")


def test_s17_a_private_address_is_not_called_unless_it_is_allowed(
    configure: Configure, address: str
) -> None:
    configure(web={"url": address})
    assert "not a public address" in discover_server("web").error
    assert McpServer.objects.get().seen_at is None


@pytest.mark.parametrize(
    "start",
    [b"HTTP/1.1 200 OK\r\nX-Slow: ", b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"],
)
def test_s17_a_server_that_drips_is_given_up(start: bytes, configure: Configure) -> None:
    with dripping_sink(start) as sink:
        url = f"http://127.0.0.1:{sink.port}/mcp"
        configure(web={"url": url, "allow_private": True, "timeout_seconds": 1})
        started = time.monotonic()
        assert "no answer within 1 s" in discover_server("web").error
        assert time.monotonic() - started < 15


def test_s17_a_redirect_to_another_place_is_not_followed(
    configure: Configure, httpserver_moved: str
) -> None:
    configure(web={"url": httpserver_moved, "allow_private": True})
    assert discover_server("web").error != ""


@pytest.fixture
def httpserver_moved(tmp_path: Path) -> Iterator[str]:
    """A server that sends everybody elsewhere."""
    code = (
        "import http.server as h\n"
        "class Moved(h.BaseHTTPRequestHandler):\n"
        "    def do_POST(self):\n"
        "        self.send_response(307)\n"
        "        self.send_header('Location', 'http://169.254.169.254/mcp')\n"
        "        self.send_header('Content-Length', '0')\n"
        "        self.end_headers()\n"
        "    log_message = print\n"
        "server = h.HTTPServer(('127.0.0.1', 0), Moved)\n"
        "print(server.server_port, flush=True)\n"
        "server.serve_forever()\n"
    )
    command = [sys.executable, "-c", code]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    try:
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("code", "message"),
    [
        pytest.param("import sys; sys.exit('no licence')", "no licence", id="ends"),
        pytest.param("import time; time.sleep(60)", "no answer within", id="hangs"),
        pytest.param("print('x' * 5_000_000)", "a line is longer", id="one long line"),
        pytest.param(
            "import time\nfor _ in range(99): print('<html>', flush=True)\ntime.sleep(60)",
            "no answer within",
            id="garbage",
        ),
    ],
)
def test_a_server_that_does_not_do_its_part_is_named(
    configure: Configure, code: str, message: str
) -> None:
    configure(bad={"command": sys.executable, "args": ["-c", code], "timeout_seconds": 1.5})
    assert message in discover_server("bad").error
    assert message in McpServer.objects.get().last_error
    assert registered_tools().get("bad.any") is None


def test_a_program_that_is_not_there_is_named(configure: Configure) -> None:
    configure(bad={"command": "/no/such/program", "timeout_seconds": 5})
    assert "/no/such/program: No such file" in discover_server("bad").error


def test_a_program_whose_secret_is_missing_leaves_no_thread_behind(configure: Configure) -> None:
    configure(bad={"command": sys.executable, "env": {"TOKEN": "env:NOT_SET"}})
    earlier = set(threading.enumerate())
    assert "is not set" in discover_server("bad").error

    def is_waiting(thread: threading.Thread) -> bool:
        return thread not in earlier and thread.name.endswith("(_read)")

    assert _wait_until(lambda: not any(map(is_waiting, threading.enumerate())))


def test_x_17_what_a_server_complains_about_is_masked(
    configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, _ = make("{alnum:24}", Random(7))
    monkeypatch.setenv("SHOP_KEY", secret)
    code = "import os, sys; sys.exit('refused: ' + os.environ['SHOP_KEY'])"
    server = {"command": sys.executable, "args": ["-c", code], "timeout_seconds": 5}
    configure(bad={**server, "env": {"SHOP_KEY": "env:SHOP_KEY"}})
    error = discover_server("bad").error
    assert "refused" in error
    assert secret not in error + McpServer.objects.get().last_error


def test_x_17_a_process_that_calls_no_server_masks_its_credentials_too(
    configure: Configure, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret, _ = make("{word:20}", Random(9))
    monkeypatch.setenv("TICKETS_KEY", secret)
    headers = {"Authorization": "env:TICKETS_KEY", "X-Other": "env:NOT_SET"}
    configure(tickets={"url": "https://tickets.example.org/mcp", "headers": headers})
    apps.get_app_config("plans").ready()
    assert secret not in redact(f"the server said {secret}")


def test_a_program_ends_when_its_worker_is_killed(tmp_path: Path) -> None:
    """The program ignores the end of its input, as careless ones do."""
    pid_file = tmp_path / "pid"
    program = (
        f"import os, time; open({str(pid_file)!r}, 'w').write(str(os.getpid()));time.sleep(120)"
    )
    keeper = Path(__file__).parents[3] / "plans" / "tools" / "mcp" / "stdio_guard.py"
    starter = (
        "import os, subprocess, sys, time\n"
        f"subprocess.Popen([sys.executable, '-I', '-S', {str(keeper)!r},"
        f" str(os.getpid()), '1000', sys.executable, '-c', {program!r}],"
        " start_new_session=True)\n"
        "time.sleep(120)\n"
    )
    worker = subprocess.Popen([sys.executable, "-c", starter])
    assert _wait_until(lambda: pid_file.exists() and pid_file.read_text() != "")
    pid = int(pid_file.read_text())
    worker.send_signal(signal.SIGKILL)
    worker.wait()
    assert _wait_until(lambda: not Path(f"/proc/{pid}").exists())


def _wait_until(is_so: Callable[[], bool]) -> bool:
    for _ in range(400):
        if is_so():
            return True
        time.sleep(0.05)
    return False


def test_servers_are_asked_again_after_a_while(configure: Configure) -> None:
    configure(shop=PROGRAM, gone={"command": "x"})
    assert health.request_discovery() == 2
    assert health.request_discovery() == 0
    configure(shop=PROGRAM)
    health.request_discovery()
    assert list(McpServer.objects.values_list("name", flat=True)) == ["shop"]
    health.discover_tools("gone")


def test_planners_are_told_that_a_server_wrote_its_descriptions(
    shop: None, project: Project
) -> None:
    offers = {offer.name: offer for offer in offers_for(Goal(project=project))}
    assert offers["shop.add"].is_foreign
    assert not offers["echo"].is_foreign

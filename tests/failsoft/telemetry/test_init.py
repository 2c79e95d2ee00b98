"""`failsoft.init` in processes of their own: what it sets up, enables, says and never does."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from textwrap import indent

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from failsoft.telemetry.exit import EXIT_SECONDS
from failsoft.telemetry.setup import SDKS
from tests.failsoft.telemetry.conftest import Server

SECRET = "sk-ant-" + "api03-" + "Ab9" * 30
TOP = Path(__file__).parents[3]
START = """
import logging, failsoft
logging.basicConfig(level=logging.INFO, format="%(levelname)s %(message)s")
"""
CALL = """
from opentelemetry import trace
with failsoft.run(node="trip", schema={"type": "object"}):
    with trace.get_tracer("agent").start_as_current_span("call") as span:
        span.set_attributes({"gen_ai.operation.name": "chat", "gen_ai.request.model": "tiny"})
"""
SDK = """
import os
class Instrumentor:
    is_instrumented_by_opentelemetry = False
    def instrument(self):
        if "BROKEN" in os.environ:
            raise RuntimeError("made for another version")
        Instrumentor.is_instrumented_by_opentelemetry = True
"""


def run(code: str, *folders: Path, **environment: str) -> tuple[str, str]:
    """Run code with nothing of the caller's OpenTelemetry; return what it printed and logged."""
    kept = {
        name: text
        for name, text in os.environ.items()
        if not name.startswith(("OTEL_", "FAILSOFT_"))
    }
    path = os.pathsep.join(map(str, (*folders, TOP)))
    done = subprocess.run(
        [sys.executable, "-c", START + code],
        env={**kept, "PYTHONPATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr.strip()


def install(folder: Path, name: str, instrumentation: str | None = None) -> None:
    """Make a distribution, and one that instruments it."""
    for package in filter(None, (name, instrumentation)):
        info = folder / f"{package.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        if package == instrumentation:
            module = package.replace("-", "_")
            (folder / f"{module}.py").write_text(SDK)
            (info / "entry_points.txt").write_text(
                f"[opentelemetry_instrumentor]\n{name} = {module}:Instrumentor\n"
            )


def test_what_is_left_is_sent_at_the_end_of_the_process(server: Server) -> None:
    code = f'print(failsoft.init("{server.url}/", "fs_key", service="bot", release="1.4"))'
    printed, logged = run(code + CALL)
    assert printed == "True"
    assert f"INFO failsoft: sending to {server.url}: nothing is instrumented" in logged
    assert server.paths == ["/api/v1/schemas/trip", "/v1/traces"]
    assert server.keys == {"Bearer fs_key"}
    assert server.span("call").attributes["failsoft.node"] == "trip"
    assert b"bot" in server.requests[1][2]


@pytest.mark.parametrize("ends", ["pass", "failsoft.flush(); os.kill(os.getpid(), 9)"])
def test_a_child_of_multiprocessing_sends_what_it_has(server: Server, ends: str) -> None:
    work = f"import multiprocessing, os\ndef work():\n{indent(CALL, ' ')}\n {ends}"
    start = "worker = multiprocessing.get_context('fork').Process(target=work)"
    begin = f"{work}\nfailsoft.init('{server.url}', 'fs_key')"
    run(f"{begin}\n{start}\nworker.start(); worker.join()")
    assert server.span("call").attributes["failsoft.node"] == "trip"


def test_address_and_key_are_read_from_the_environment(server: Server) -> None:
    names = {"FAILSOFT_URL": server.url, "FAILSOFT_KEY": "fs_key"}
    run("failsoft.init()" + CALL, OTEL_SERVICE_NAME="theirs", **names)
    assert server.keys == {"Bearer fs_key"}
    assert b"theirs" in server.requests[1][2]


def test_without_an_address_nothing_is_sent_and_nothing_raised() -> None:
    printed, logged = run("print(failsoft.init())" + CALL)
    assert printed == "False"
    assert logged == "WARNING failsoft: nothing is sent: no address: set FAILSOFT_URL"


def test_without_a_key_it_says_which_variable_to_set(server: Server) -> None:
    _, logged = run(f"failsoft.init({server.url!r})")
    assert "WARNING failsoft: no key: set FAILSOFT_API_KEY" in logged


def test_a_misspelt_instrumentation_is_named(server: Server) -> None:
    _, logged = run(f"failsoft.init({server.url!r}, 'fs_key', instrument=['opnai', 'openai'])")
    assert "WARNING failsoft: instrument names opnai, which is neither" in logged


def test_a_switched_off_opentelemetry_stays_off(server: Server) -> None:
    printed, _ = run(f'print(failsoft.init("{server.url}"))' + CALL, OTEL_SDK_DISABLED="true")
    assert (printed, server.requests) == ("False", [])


def test_without_the_extra_it_says_what_to_install() -> None:
    code = """
import sys
sys.modules["opentelemetry"] = None
print(failsoft.init("http://127.0.0.1:9", "k"))
with failsoft.run(node="trip", schema={"type": "object"}) as run:
    run.invalid("no")
"""
    printed, logged = run(code)
    assert printed == "False"
    assert 'nothing is sent: pip install "failsoft[otel]"' in logged


def test_a_provider_of_the_host_gets_a_processor_and_stays(server: Server) -> None:
    code = f"""
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
own = TracerProvider(shutdown_on_exit=False)
trace.set_tracer_provider(own)
print(failsoft.init("{server.url}"), failsoft.init("{server.url}"))
assert trace.get_tracer_provider() is own
"""
    printed, _ = run(code + CALL)
    assert printed == "True True"
    assert [span.name for span in server.spans] == ["call", "invoke_agent trip"]


def test_a_server_that_is_away_keeps_no_process() -> None:
    begun = time.monotonic()
    run('failsoft.init("http://127.0.0.1:9", "k")' + CALL)
    assert time.monotonic() - begun < 30


def test_a_server_that_takes_connections_and_never_answers_keeps_no_process() -> None:
    nodes = 'for node in "abcd":\n    with failsoft.run(node=node, schema={"type": "object"}): pass'
    with socket.create_server(("127.0.0.1", 0), backlog=100) as silent:
        begun = time.monotonic()
        run(f'failsoft.init("http://127.0.0.1:{silent.getsockname()[1]}", "k")\n{nodes}')
    assert time.monotonic() - begun < 30


def test_spans_and_log_records_keep_a_process_no_longer_than_spans_alone(tmp_path: Path) -> None:
    install(tmp_path, "boto3", "opentelemetry-instrumentation-botocore")
    with socket.create_server(("127.0.0.1", 0), backlog=100) as silent:
        code = f"""
import atexit, time
from opentelemetry._logs import LogRecord, get_logger
atexit.register(lambda: print(time.monotonic() - over))
failsoft.init("http://127.0.0.1:{silent.getsockname()[1]}", "k")
with failsoft.run(node="trip"):
    get_logger("bedrock").emit(LogRecord(event_name="gen_ai.choice", body="x"))
over = time.monotonic()
"""
        printed, _ = run(code, tmp_path)
    assert float(printed) < EXIT_SECONDS + 2


def test_the_first_installed_instrumentation_is_enabled(tmp_path: Path) -> None:
    install(tmp_path, "groq", "opentelemetry-instrumentation-groq")
    install(tmp_path, "unknown-sdk", "openinference-instrumentation-unknown-sdk")
    _, logged = run('failsoft.init("http://127.0.0.1:9")', tmp_path)
    assert (
        "INFO failsoft: sending to http://127.0.0.1:9: opentelemetry-instrumentation-groq,"
        " openinference-instrumentation-unknown-sdk"
    ) in logged
    _, logged = run('failsoft.init("http://127.0.0.1:9", instrument=["openai"])', tmp_path)
    assert "nothing is instrumented" in logged


def test_an_sdk_without_an_instrumentation_is_named(tmp_path: Path) -> None:
    install(tmp_path, "groq")
    _, logged = run('failsoft.init("http://127.0.0.1:9")', tmp_path)
    package = "openinference-instrumentation-groq"
    assert f"WARNING failsoft: calls of groq are not sent: pip install {package}" in logged


def test_a_broken_instrumentation_does_not_reach_the_host(tmp_path: Path) -> None:
    install(tmp_path, "groq", "openinference-instrumentation-groq")
    printed, logged = run('print(failsoft.init("http://127.0.0.1:9"))', tmp_path, BROKEN="1")
    assert printed == "True"
    assert "instrumenting groq failed" in logged


def test_log_records_are_sent_where_an_instrumentation_tells_answers_there(
    tmp_path: Path, server: Server
) -> None:
    install(tmp_path, "boto3", "opentelemetry-instrumentation-botocore")
    code = f"""
from opentelemetry._logs import LogRecord, get_logger
failsoft.init("{server.url}", "k")
with failsoft.run(node="trip"):
    for name in ("gen_ai.user.message", "gen_ai.choice"):
        body = {{"message": {{"content": "{SECRET} {{name}}"}}}}
        get_logger("bedrock").emit(LogRecord(event_name=name, body=body))
"""
    run(code, tmp_path)
    [body] = [body for _, path, body in server.requests if path == "/v1/logs"]
    [record] = [
        record
        for resource in ExportLogsServiceRequest.FromString(body).resource_logs
        for scope in resource.scope_logs
        for record in scope.log_records
    ]
    assert record.event_name == "gen_ai.choice"
    assert SECRET not in str(record)
    assert "REDACTED" in str(record.body)
    told = {pair.key: pair.value.string_value for pair in record.attributes}
    assert told["failsoft.node"] == "trip"


def test_the_text_of_answers_is_told_unless_the_host_says_otherwise() -> None:
    name = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
    code = f'failsoft.init("http://127.0.0.1:9"); import os; print(os.environ["{name}"])'
    assert run(code)[0] == "SPAN_ONLY"
    assert run(code, **{name: "NO_CONTENT"})[0] == "NO_CONTENT"


def test_every_row_says_what_tells_its_calls() -> None:
    assert [sdk.name for sdk in SDKS if not (sdk.by or sdk.switch)] == []
    assert len({sdk.name for sdk in SDKS}) == len(SDKS)


@pytest.mark.slow
def test_a_consumer_is_typed(tmp_path: Path) -> None:
    consumer = tmp_path / "consumer.py"
    consumer.write_text(
        "import failsoft\n\n"
        "assert failsoft.init('http://localhost', 'k', service='bot')\n\n\n"
        "@failsoft.run(node='trip')\n"
        "def plan(city: str, days: int = 1) -> list[str]:\n"
        "    return [city] * days\n\n\n"
        "@failsoft.run(node='trip')\n"
        "async def walk(city: str) -> list[str]:\n"
        "    with failsoft.run() as run:\n"
        "        run.invalid('no')\n"
        "    return plan(city, days=2)\n\n\n"
        "reveal_type(plan)\n"
        "reveal_type(walk)\n"
        "plan(3)\n"
    )
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", str(consumer)]
    environment = {**os.environ, "MYPYPATH": str(TOP)}
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True)
    told = [line for line in done.stdout.splitlines() if line.startswith("consumer.py")]
    assert [line.partition(": ")[2] for line in told] == [
        'note: Revealed type is "def (city: str, days: int =) -> list[str]"',
        'note: Revealed type is "def (city: str) -> typing.Coroutine[Any, Any, list[str]]"',
        'error: Argument 1 to "plan" has incompatible type "int"; expected "str"  [arg-type]',
    ]

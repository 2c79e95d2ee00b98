"""The families and their clients as data: what each is run with, and what it cannot tell."""

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import IO, Any

from tests.failsoft.redaction.made_up import make

HERE = Path(__file__).resolve().parent
FAMILIES = HERE / "families"
ROOT = HERE.parents[1]
ENVIRONMENTS = ROOT / ".venv-integrations"
# What looks like a secret is made up on the spot.
WRITTEN, (SECRET,) = make((HERE / "answers.toml").read_text(), Random(20))
BOOK: Mapping[str, Any] = tomllib.loads(WRITTEN)
CELLS: Mapping[str, Mapping[str, Any]] = BOOK["cells"]
REPLIES: Mapping[str, Mapping[str, Any]] = BOOK["replies"]
PROMPT_VERSION = "planner-v5"
# Batches leave when a client flushes them, in its order, and not by a clock in between.
FLUSHED = {"OTEL_BSP_SCHEDULE_DELAY": "3600000", "OTEL_BLRP_SCHEDULE_DELAY": "3600000"}


@dataclass(frozen=True, slots=True)
class Client:
    """One way of calling a model; `cells` says where it tells less than happened, and why."""

    family: str
    name: str
    script: str
    node: str
    provider: str | None
    environment: Mapping[str, str] = field(default_factory=dict)
    # Whether every answer is a call of a tool.
    tools: bool = False
    # Fields of the expected event that the client tells otherwise, by reply.
    events: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    # Cells that the client makes impossible, with the reason.
    impossible: Mapping[str, str] = field(default_factory=dict)
    # Fields of an event that the client never tells, with the reason.
    untold: Mapping[str, str] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """Its name among all."""
        return f"{self.family}:{self.name}"

    @property
    def python(self) -> Path:
        """The interpreter of its family."""
        return ENVIRONMENTS / self.family / "bin" / "python"

    def expected(self, cell: str) -> list[dict[str, Any]]:
        """Return the events that are true of a cell, one a reply."""
        return [
            {**REPLIES[reply]["event"], **self.events.get(reply, {}), **self.events.get(cell, {})}
            for reply in CELLS[cell]["replies"]
        ]

    def reasons_for(self, cell: str) -> list[str]:
        """Return why the events of a cell tell less than happened."""
        keys = dict.fromkeys((*CELLS[cell]["replies"], cell))
        return [self.events[key]["reason"] for key in keys if key in self.events]


def families() -> list[str]:
    """Return the families that have clients."""
    return sorted(path.parent.name for path in FAMILIES.glob("*/family.toml"))


def clients_of(family: str) -> Iterator[Client]:
    """Yield the clients of a family; what they share stands in its defaults."""
    book = tomllib.loads((FAMILIES / family / "family.toml").read_text())
    shared = book.get("defaults", {})
    for name, own in book["clients"].items():
        told = {**shared, **own}
        for table in ("events", "impossible", "untold", "environment"):
            told[table] = {**shared.get(table, {}), **own.get(table, {})}
        yield Client(family, name, **told)


class RunningClient:
    """A client's process: plays one cell at a time and exports what it told of it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        """Speak with a process."""
        self._process = process

    def play(self, cell: str, url: str, scripted: Mapping[str, Any] | None = None) -> str | None:
        """Play a cell against the provider; returns what the client raised."""
        scripted = scripted or CELLS[cell]
        asked = {
            "name": cell,
            "url": url,
            "calls": len(scripted["replies"]),
            "stream": scripted.get("stream", False),
            "tools": scripted.get("tools", False),
        }
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(json.dumps(asked) + "\n")
        stdin.flush()
        return self._answer(stdout)

    def _answer(self, stdout: IO[str]) -> str | None:
        """Pass over what the packages print themselves."""
        for line in stdout:
            if line.startswith('{"cell"'):
                raised: str | None = json.loads(line)["raised"]
                return raised
        raise AssertionError(f"the client ended with {self._process.wait()}")


@contextmanager
def running_client(client: Client, endpoint: str, key: str) -> Iterator[RunningClient]:
    """Start a client that exports to the product, as its documentation says."""
    environment = {
        **os.environ,
        **FLUSHED,
        "PYTHONPATH": str(FAMILIES),
        "NODE_PATH": str(ENVIRONMENTS / client.family / "node_modules"),
        "NO_PROXY": "127.0.0.1",
        "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
        "OTEL_EXPORTER_OTLP_HEADERS": f"Authorization=Bearer%20{key}",
        "OTEL_RESOURCE_ATTRIBUTES": f"failsoft.prompt_version={PROMPT_VERSION}",
        "OTEL_SERVICE_NAME": client.name,
        **client.environment,
    }
    script = FAMILIES / client.family / client.script
    program = "node" if script.suffix == ".cjs" else str(client.python)
    process = subprocess.Popen(
        [program, str(script)],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=sys.stderr,
        text=True,
    )
    try:
        yield RunningClient(process)
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(timeout=30)
        assert process.stdout is not None
        process.stdout.close()

"""The shell and Python blocks of the documentation run as they are printed.

A copy of the work tree, an empty home folder, a stack of its own on a port of its own. The
blocks of a page share one shell, page by page. `<!-- not run: WHY -->` above a fence leaves
it out; `<!-- may end with 1: WHY -->` lets it fail.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import textwrap
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from psycopg.conninfo import conninfo_to_dict

from config.local.binaries import find_postgresql
from tests.faults.stack import free_port

TOP = Path(__file__).resolve().parent.parent
PAGES = [TOP / "README.md", *sorted((TOP / "docs").rglob("*.md"))]
START_SECONDS = 600
PAGE_SECONDS = 900
BLOCK = re.compile(
    r"^(?:[ ]*<!-- (?P<note>not run|may end with 1): (?P<why>.+?) -->\n+)?"
    r"(?P<indent>[ ]*)```(?P<language>bash|sh|shell|console|python)\n"
    r"(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)
START = "make run"
# As docs/tools.md starts it.
MCP_SERVERS = '{"shop": {"command": ".venv/bin/python", "args": ["examples/mcp_server.py"]}}'
NAMES = re.compile(r"https?://(?:127\.0\.0\.1:8000|localhost:8000|failsoft\.example\.org)")

pytestmark = pytest.mark.docs


@dataclass(frozen=True, slots=True)
class Block:
    """One fence: where it is, what it holds, and what stands above it."""

    line: int
    language: str
    text: str
    note: str | None
    why: str | None

    @property
    def is_run(self) -> bool:
        """Whether it goes into the page's shell."""
        return self.note != "not run" and self.text.strip() != START


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(
            text.count("\n", 0, match.start("indent")) + 1,
            match["language"],
            textwrap.dedent(match["text"]),
            match["note"],
            match["why"],
        )
        for match in BLOCK.finditer(text)
    ]


@dataclass(frozen=True, slots=True)
class Installation:
    """A running stack of its own, and the environment of a shell beside it."""

    checkout: Path
    url: str
    env: dict[str, str]

    def script(self, blocks: list[Block]) -> str:
        """Return one shell program; it says which block begins."""
        return "set -euo pipefail\n" + "".join(map(self._part, blocks))

    def _part(self, block: Block) -> str:
        text = NAMES.sub(self.url, block.text)
        text = text.replace("/opt/failsoft", str(self.checkout))
        text = text.replace("/etc/failsoft", str(self.checkout.parent / "etc"))
        if block.language == "python":
            # What belongs into the product needs its applications.
            program = "manage.py shell" if "from plans" in text else "-"
            text = f".venv/bin/python {program} <<'PYTHON'\n{text}\nPYTHON\n"
        if block.note:
            text = f"{{\n{text}}} || [ $? = 1 ]\n"
        return f"echo '@@ {block.line}' >&2\n{text}"


@pytest.fixture(scope="module")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Installation]:
    """Start the product from a copy of the work tree, as its first page says."""
    folder = tmp_path_factory.mktemp("docs")
    checkout, port = copy_checkout(folder), free_port()
    for name in ("home", "curl", "etc"):
        (folder / name).mkdir()
    # What the pages show is the plain call; here a refusal ends the block.
    (folder / "curl/.curlrc").write_text("silent\nshow-error\nfail-with-body\n")
    env = {
        "PATH": f"{find_postgresql()}:{os.environ['PATH']}",
        "HOME": str(folder / "home"),
        "CURL_HOME": str(folder / "curl"),
        "PYTHONDONTWRITEBYTECODE": "1",
        "LANG": "C.UTF-8",
        "FAILSOFT_MCP_SERVERS": MCP_SERVERS,
    }
    process = start(checkout, {**env, "ARGS": f"--port {port}"})
    try:
        runtime = json.loads((checkout / ".local/runtime.json").read_text())["settings"]
        url = f"http://127.0.0.1:{port}"
        env |= prepare_server(checkout, env, runtime, url)
        yield Installation(checkout, url, env)
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=60)


def copy_checkout(folder: Path) -> Path:
    """Copy what a clone would hold, and changes that are not committed yet."""
    checkout = folder / "failsoft"
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=TOP,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\0")
    for name in filter(None, listed):
        if (TOP / name).is_file():
            (checkout / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(TOP / name, checkout / name)
    # No test reaches the network: what is installed already is used.
    for name in (".venv", ".venv-docs"):
        (checkout / name).symlink_to(TOP / name)
    return checkout


def start(checkout: Path, env: dict[str, str]) -> "subprocess.Popen[bytes]":
    log = checkout.parent / "make-run.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            START.split(), cwd=checkout, env=env, stdout=output, stderr=output
        )
    deadline = time.monotonic() + START_SECONDS
    while "Failsoft is ready" not in log.read_text():
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            pytest.fail(log.read_text())
        time.sleep(0.5)
    return process


def prepare_server(
    checkout: Path, env: dict[str, str], runtime: dict[str, str], url: str
) -> dict[str, str]:
    """Lay out what the deployment page takes for given: a server, an environment file."""
    sockets = str(conninfo_to_dict(runtime["database_url"])["host"])
    reached = {"PGHOST": sockets, "PGUSER": "failsoft"}
    subprocess.run(["createdb", "served"], env={**env, **reached}, check=True)
    values = {
        "DATABASE_URL": "postgresql:///served",
        **reached,
        "BROKER_URL": runtime["broker_url"],
        "FAILSOFT_SECRET_KEY": runtime["secret_key"],
        "FAILSOFT_WORKING_KEY": runtime["working_key"],
        "FAILSOFT_BASE_URL": "https://failsoft.example.org",
        "FAILSOFT_DATA_DIR": str(checkout.parent / "served"),
    }
    lines = "".join(f"{name}={value}\n" for name, value in values.items())
    (checkout.parent / "etc/failsoft.env").write_text(lines)
    return reached


@pytest.mark.parametrize(
    "page", [page for page in PAGES if blocks_of(page)], ids=lambda page: str(page.relative_to(TOP))
)
def test_every_block_of_a_page_runs(
    page: Path, installation: Installation, capfd: pytest.CaptureFixture[str]
) -> None:
    blocks = blocks_of(page)
    began = time.monotonic()
    done = subprocess.run(
        ["bash", "-c", installation.script([b for b in blocks if b.is_run])],
        cwd=installation.checkout,
        env=installation.env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=PAGE_SECONDS,
        check=False,
    )
    took = time.monotonic() - began
    with capfd.disabled():
        print(f"\n{page.relative_to(TOP)}: {took:.0f} s")  # noqa: T201 - the list
        for block in blocks:
            told = f"not run: {block.why}" if block.note == "not run" else "run"
            print(f"  line {block.line}, {block.language}: {told}")  # noqa: T201
    assert done.returncode == 0, done.stdout[-4000:]


@pytest.mark.parametrize(
    ("block", "code"),
    [
        ("```bash\nfalse\ntrue\n```\n", 1),
        ("```bash\ntrue\n```\n\n```bash\nfalse | cat\n```\n", 1),
        ("```bash\necho $UNSET\n```\n", 1),
        ("  ```bash\n  exit 3\n  ```\n", 3),
        ("<!-- may end with 1: it is a toy -->\n```bash\nfalse\n```\n", 0),
        ("<!-- may end with 1: it is a toy -->\n```bash\n(exit 2)\n```\n", 1),
        ("<!-- not run: needs a moon -->\n```bash\nfalse\n```\n", 0),
        ("```text\nfalse\n```\n", 0),
    ],
)
def test_a_block_that_fails_ends_its_page(tmp_path: Path, block: str, code: int) -> None:
    page = tmp_path / "page.md"
    page.write_text(block)
    here = Installation(tmp_path, "http://127.0.0.1:9", {})
    script = here.script([b for b in blocks_of(page) if b.is_run])
    assert subprocess.run(["bash", "-c", script], check=False).returncode == code

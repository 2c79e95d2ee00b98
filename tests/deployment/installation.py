"""The product as docs/deployment.md installs it, on the servers of this machine.

The blocks and files of the documentation are taken as printed. Only names that must be unique or
reachable here are replaced: folders, ports, the role, database and virtual host, and placeholders.
"""

import base64
import re
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.stack import free_port
from tests.test_commands_as_printed import TOP, Block, blocks_of

DEPLOYMENT = TOP / "docs" / "deployment"
UNITS = ("web", "worker", "upkeep", "beat")
OURS = "tests/deployment runs it"
BIN = Path(sys.executable).parent


def printed(word: str) -> Block:
    """Return the block of docs/deployment.md that holds a word and is left to these tests."""
    blocks = blocks_of(TOP / "docs" / "deployment.md")
    (block,) = [one for one in blocks if one.why and OURS in one.why and word in one.text]
    return block


@dataclass(frozen=True, slots=True)
class Deployment:
    """The folders, names and ports of one installation."""

    folder: Path
    name: str = field(default_factory=lambda: f"failsoft_{secrets.token_hex(4)}")
    password: str = field(default_factory=lambda: secrets.token_hex(16))
    port: int = field(default_factory=free_port)
    tls_port: int = field(default_factory=free_port)

    @property
    def url(self) -> str:
        """The address that people use."""
        return f"https://localhost:{self.tls_port}"

    @property
    def env_file(self) -> Path:
        """The environment of every process."""
        return self.folder / "etc" / "failsoft.env"

    @property
    def dump(self) -> Path:
        """Where the backup goes."""
        return self.folder / "var" / "failsoft.dump"

    def place(self, text: str) -> str:
        """Return a printed text with the folders and ports of this machine."""
        for printed_path, path in (
            ("/opt/failsoft/.venv/bin", BIN),
            ("/opt/failsoft", TOP),
            ("/etc/failsoft", self.folder / "etc"),
            ("/var/lib/failsoft", self.folder / "var"),
            ("/etc/ssl/failsoft", self.folder / "tls"),
        ):
            text = text.replace(printed_path, str(path))
        text = re.sub(r"(?<![\w/])\.venv/bin", str(BIN), text)
        return text.replace("8000", str(self.port)).replace("CHANGE-ME", self.password)

    def run(self, block: Block) -> str:
        """Run a printed block in a shell; return what it wrote."""
        text = re.sub(r"(?<![/\w.])failsoft(?![\w./])", self.name, block.text)
        text = self.place(text.replace("failsoft_restored", f"{self.name}_restored"))
        return self.shell(text)

    def shell(self, text: str) -> str:
        """Run a program of bash."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", text],
            cwd=self.folder,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
        return done.stdout + done.stderr

    def environment(self) -> dict[str, str]:
        """Return what a login shell has, and nothing of the suite's own."""
        path = f"{BIN}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        return {"PATH": path, "LANG": "C.UTF-8", "HOME": str(self.folder)}

    def example(self) -> str:
        """Return the example of the environment, as it is shipped."""
        return (DEPLOYMENT / "failsoft.env.example").read_text(encoding="utf-8")

    def fill_in(self) -> None:
        """Fill in the environment file."""
        at = f"{self.name}:{self.password}@127.0.0.1"
        values = {
            "DATABASE_URL": f"postgresql://{at}:5432/{self.name}",
            "BROKER_URL": f"amqp://{at}:5672/{self.name}",
            "FAILSOFT_SECRET_KEY": secrets.token_urlsafe(50),
            "FAILSOFT_WORKING_KEY": base64.b64encode(secrets.token_bytes(32)).decode(),
            "FAILSOFT_BASE_URL": self.url,
            "FAILSOFT_ALLOWED_HOSTS": "localhost,127.0.0.1",
            "FAILSOFT_EMAIL_URL": "smtp+tls://127.0.0.1:587",
            "FAILSOFT_EMAIL_FROM": "failsoft@localhost",
        }
        text = self.place(self.example())
        for name, value in values.items():
            text = re.sub(rf"^{name}=.*$", f"{name}={value}", text, flags=re.MULTILINE)
        self.env_file.write_text(text, encoding="utf-8")

    def settings(self) -> dict[str, str]:
        """Return the environment file, as systemd reads it."""
        lines = self.env_file.read_text(encoding="utf-8").splitlines()
        pairs = (line.partition("=") for line in lines if line and not line.startswith("#"))
        return {name: value for name, _, value in pairs}

    def unit(self, name: str) -> str:
        """Return a unit with the folders and ports of this machine."""
        text = (DEPLOYMENT / "systemd" / f"failsoft-{name}.service").read_text(encoding="utf-8")
        return self.place(text)

    @contextmanager
    def processes(self) -> Iterator[None]:
        """Run what the units start, with the environment that they give."""
        with ExitStack() as stack:
            for name in UNITS:
                stack.enter_context(self._process(name))
            yield

    @contextmanager
    def _process(self, name: str) -> Iterator[None]:
        unit = self.unit(name).replace("\\\n", " ")
        (command,) = re.findall(r"^ExecStart=(.*)$", unit, re.MULTILINE)
        own = dict(re.findall(r"^Environment=(\w+)=(.*)$", unit, re.MULTILINE))
        with self.log(name).open("wb") as log:
            process = subprocess.Popen(
                command.replace("%%h", "%h").split(),
                cwd=TOP,
                env=self.environment() | own | self.settings(),
                stdout=log,
                stderr=log,
            )
        try:
            yield
        finally:
            process.terminate()
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def log(self, name: str) -> Path:
        """Return where a process writes."""
        return self.folder / f"{name}.log"

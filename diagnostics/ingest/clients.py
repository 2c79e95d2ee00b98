"""The lines that connect an agent, by client; the table is `clients.toml`."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent
from typing import Any

from failsoft import VERSION

TABLE: Mapping[str, Any] = tomllib.loads(
    (Path(__file__).parent / "clients.toml").read_text(encoding="utf-8")
)
LIBRARY = f"failsoft[otel] @ {{url}}/packages/failsoft-{VERSION}-py3-none-any.whl"
QUOTED = frozenset(" [")  # in a shell


@dataclass(frozen=True, slots=True)
class ClientLines:
    """What to type in a shell, what to write into a file, and how to run it."""

    name: str
    label: str
    shell: str
    file: str
    code: str
    start: str


def clients_for(url: str, key: str) -> Iterator[ClientLines]:
    """Yield the lines of every client for a server; `key` may be an expression of a shell."""
    for name, own in TABLE["clients"].items():
        row = {**TABLE["defaults"], **own}
        packages = [*([LIBRARY] if row["library"] else []), *row["packages"]]
        values = {
            "packages": " ".join(
                f'"{package}"' if QUOTED & set(package) else package for package in packages
            ),
            "imports": row["imports"].strip(),
            "call": indent(row["call"].strip(), "    ").lstrip(),
            "url": url,
            "key": key,
        }
        shell, code = (
            _fill(text.strip(), values)
            for text in (f"{row['install']}\n{row['connect'].strip()}", row["code"])
        )
        yield ClientLines(name, row["label"], shell, row["file"], code, row["start"])


def _fill(text: str, values: Mapping[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text

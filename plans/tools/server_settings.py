"""The configuration of MCP servers, and the names of their tools in plans.

One section for each server, in the common form of MCP clients:

    {"files": {"command": "npx", "args": ["-y", "..."], "env": {"TOKEN": "env:FILES_TOKEN"}},
     "search": {"url": "https://mcp.example.org/mcp", "headers": {"Authorization": "env:S"}}}
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    StringConstraints,
    ValidationError,
    model_validator,
)

from failsoft.redaction.secret_names import is_secret_name

# Providers take native tool names of this length; `.` is written as `__` there.
MAX_NATIVE_NAME = 64
_SERVER_NAME = re.compile(r"[a-z][a-z0-9-]{0,29}")
_REFERENCE = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|file:/.+")
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]")
_DIGEST_CHARACTERS = 6

Seconds = Annotated[float, Field(gt=0, le=300, allow_inf_nan=False)]
Limit = Annotated[int, Field(ge=1, le=1000)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=4_000)]


class ServersError(ValueError):
    """The configuration of the servers is invalid; the message names the place."""


class _Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class ToolSettings(_Settings):
    """Overrides of what the server reports about a tool; None keeps it."""

    side_effects: bool | None = None
    idempotent: bool | None = None
    offered: bool = True
    timeout_seconds: Seconds | None = None
    max_concurrent: Limit | None = None


class ServerSettings(_Settings):
    """One server: a program to start, or an address to call."""

    # Written by other clients; what is said by `command` or `url`.
    type: Literal["stdio", "http", "streamable-http", "streamableHttp"] | None = None
    command: Text | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    cwd: Text | None = None
    url: Text | None = None
    headers: Mapping[str, str] = {}
    allow_private: bool = False
    timeout_seconds: Seconds = 30.0
    max_concurrent: Limit | None = None
    tools: Mapping[str, ToolSettings] = {}

    @property
    def transport(self) -> Literal["stdio", "http"]:
        return "http" if self.url is not None else "stdio"

    @model_validator(mode="after")
    def _is_one_of_both(self) -> Self:
        if (self.command is None) == (self.url is None):
            raise ValueError("either command or url is required")
        if self.url is not None:
            try:
                parts = urlsplit(self.url)
            except ValueError:
                raise ValueError("url is not a URL") from None
            if parts.scheme not in {"http", "https"} or not parts.hostname:
                raise ValueError("url must be an http:// or https:// address with a host")
            if parts.username is not None or parts.password is not None:
                raise ValueError("url must not carry credentials; use headers")
        _check_secrets("env", self.env)
        _check_secrets("headers", self.headers)
        return self


def read_servers(value: object) -> dict[str, ServerSettings]:
    """Check the section of all servers; ServersError names what is wrong and where."""
    if not isinstance(value, Mapping):
        raise ServersError("must be an object of servers by name")
    return {str(name): _read_server(str(name), item) for name, item in value.items()}


def is_reference(value: str) -> bool:
    """Whether a value is read from elsewhere: `env:NAME` or `file:/path`."""
    return _REFERENCE.fullmatch(value) is not None


def name_tools(server: str, remote_names: Sequence[str]) -> dict[str, str]:
    """Return `server.tool` for each name of a server, unique and valid for providers.

    Characters that providers refuse become `_`; where two names become one, or a name
    becomes too long, a prefix of its digest is appended.
    """
    clean = {name: _NOT_IN_NAMES.sub("_", name) for name in remote_names}
    counts = Counter(clean.values())
    max_characters = MAX_NATIVE_NAME - len(server) - len("__")
    return {
        name: f"{server}.{_fit(name, short, max_characters, is_alone=counts[short] == 1)}"
        for name, short in clean.items()
    }


def native_name(name: str) -> str:
    """Return the name of a tool as a provider's native tool calls can carry it."""
    return name.replace(".", "__")


def digest_of(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _fit(name: str, short: str, max_characters: int, *, is_alone: bool) -> str:
    if is_alone and 0 < len(short) <= max_characters:
        return short
    digest = digest_of(name)[:_DIGEST_CHARACTERS]
    return f"{short[: max_characters - len(digest) - 1]}-{digest}"


def _read_server(name: str, item: Any) -> ServerSettings:  # noqa: ANN401 - being checked
    if not _SERVER_NAME.fullmatch(name):
        raise ServersError(
            f"{name[:40]!r}: a name is up to 30 of a-z, 0-9 and -, starting with a letter"
        )
    try:
        return ServerSettings.model_validate(item)
    except ValidationError as error:
        fault = error.errors(include_input=False, include_url=False)[0]
        place = ".".join([name, *map(str, fault["loc"])])
        raise ServersError(f"{place}: {fault['msg'].removeprefix('Value error, ')}") from None


def _check_secrets(field: str, values: Mapping[str, str]) -> None:
    for name, value in values.items():
        if is_secret_name(name) and not is_reference(value):
            raise ValueError(f"{field}.{name[:80]} is secret: use env:NAME or file:/path")

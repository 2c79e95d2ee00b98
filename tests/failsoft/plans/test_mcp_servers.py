"""How MCP servers are configured, and what their tools are called."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plans.tools.server_settings import ServersError, name_tools, native_name, read_servers

NATIVE = re.compile(r"[a-zA-Z0-9_-]{1,64}")


@pytest.mark.parametrize(
    ("servers", "message"),
    [
        ([], "must be an object"),
        ({"Files": {"command": "x"}}, "a name is up to 30"),
        ({"a__b": {"command": "x"}}, "a name is up to 30"),
        ({"a": {}}, "a: either command or url"),
        ({"a": {"command": "x", "url": "https://x"}}, "a: either command or url"),
        ({"a": {"url": "ftp://x"}}, "must be an http"),
        ({"a": {"url": "https://me:word@x"}}, "must not carry credentials"),
        ({"a": {"url": "http://[x"}}, "url is not a URL"),
        ({"a": {"comand": "x"}}, "a.comand: Extra inputs"),
        ({"a": {"url": "https://x/sse", "type": "sse"}}, "a.type: Input should be 'stdio', 'http'"),
        ({"a": {"command": "x", "timeout_seconds": 0}}, "a.timeout_seconds"),
        ({"a": {"url": "https://x", "headers": {"Authorization": "x"}}}, "env:NAME"),
        ({"a": {"command": "x", "env": {"API_KEY": "x"}}}, "env.API_KEY is secret"),
    ],
)
def test_s25_what_cannot_be_is_refused_with_its_place(servers: Any, message: str) -> None:
    with pytest.raises(ServersError, match=re.escape(message)):
        read_servers(servers)


def test_references_and_plain_values_are_taken() -> None:
    env = {"API_KEY": "env:SHOP_KEY", "LEVEL": "debug", "TOKEN": "file:/run/token"}
    server = read_servers({"shop": {"command": "x", "env": env}})["shop"]
    assert (server.transport, dict(server.env)) == ("stdio", env)
    for kind in ("http", "streamable-http", "streamableHttp"):
        server = read_servers({"a": {"type": kind, "url": "https://x/mcp"}})["a"]
        assert server.transport == "http"


def test_names_that_become_one_are_told_apart() -> None:
    tool_names = name_tools("shop", ["read.file", "read/file", "plain"])
    assert tool_names["plain"] == "shop.plain"
    assert tool_names["read.file"].startswith("shop.read_file-")
    assert len(set(tool_names.values())) == 3


@given(
    st.from_regex(r"[a-z][a-z0-9-]{0,29}", fullmatch=True),
    st.lists(st.text(min_size=1, max_size=90), unique=True, max_size=8),
)
def test_every_name_fits_native_tool_calls_and_is_alone(server: str, names: list[str]) -> None:
    tool_names = name_tools(server, names)
    natives = {native_name(name) for name in tool_names.values()}
    assert len(natives) == len(names)
    assert all(NATIVE.fullmatch(name) for name in natives)

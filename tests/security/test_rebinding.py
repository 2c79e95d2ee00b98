"""A name that leads to a public address first and to this machine a moment later (S17).

The address that was checked is the one that is connected, whoever asks; sockets are watched
where the system opens them.
"""

import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from agents.llm.models import Provider
from agents.llm.provider import ProviderError, ProviderUnavailableError, RefusedCallError
from agents.llm.registry import open_provider
from diagnostics.alerting.senders import SendError
from diagnostics.alerting.senders.webhook import post
from diagnostics.outbound.addresses import ForbiddenAddressError
from plans.tools.builtin import HttpGetArgs, HttpGetError, http_get
from plans.tools.mcp.discovery import discover_server
from tests.agents.llm.test_providers import ask

NAME = "rebinding.example.org"
URL = f"http://{NAME}:8000/hook"
PUBLIC, PRIVATE = "8.8.8.8", "127.0.0.1"


def ask_model(adapter: str) -> object:
    """Call a model as a worker does whose provider a project's administrator has set."""
    row = Provider(name="p", adapter=adapter, base_url=URL, allows_private=False)
    return open_provider(row).complete(ask())


CALLS: dict[str, Callable[[], object]] = {
    "webhook": lambda: post(URL, {}, b"{}"),
    "http_get": lambda: http_get(HttpGetArgs(url=URL)),
    "mcp": lambda: discover_server("web"),
    "openai": lambda: ask_model("openai"),
    "anthropic": lambda: ask_model("anthropic"),
}


@pytest.fixture
def connected(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The addresses that were connected; every connection is refused."""
    addresses: list[str] = []

    def connect(_: socket.socket, address: Any) -> None:
        addresses.append(address[0])
        raise ConnectionRefusedError(address[0])

    def connect_ex(own: socket.socket, address: Any) -> int:
        connect(own, address)
        return 0

    monkeypatch.setattr(socket.socket, "connect", connect)
    monkeypatch.setattr(socket.socket, "connect_ex", connect_ex)
    return addresses


def resolve_in_turn(monkeypatch: pytest.MonkeyPatch, answers: list[list[str]]) -> list[str]:
    """Answer each lookup of the name with the next addresses, then always with the last."""
    lookups: Iterator[list[str]] = iter(answers)
    resolve, asked = socket.getaddrinfo, []

    def getaddrinfo(host: Any, port: Any, *more: Any, **named: Any) -> Any:
        name = host.decode() if isinstance(host, bytes) else host
        if name != NAME:
            return resolve(host, port, *more, **named)
        asked.append(name)
        kind = (socket.AF_INET, socket.SOCK_STREAM, 6, "")
        return [(*kind, (address, port)) for address in next(lookups, answers[-1])]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return asked


@pytest.mark.django_db
@pytest.mark.parametrize("caller", list(CALLS))
@pytest.mark.parametrize("answers", [[[PUBLIC], [PRIVATE]], [[PUBLIC], [PUBLIC], [PRIVATE]]])
def test_s17_only_the_address_that_was_checked_is_connected(
    monkeypatch: pytest.MonkeyPatch,
    settings: Any,
    connected: list[str],
    caller: str,
    answers: list[list[str]],
) -> None:
    settings.FAILSOFT_MCP_SERVERS = {"web": {"url": URL, "timeout_seconds": 2}}
    asked = resolve_in_turn(monkeypatch, answers)
    with suppress(SendError, HttpGetError, ProviderError):
        CALLS[caller]()
    assert asked
    assert PRIVATE not in connected
    assert caller == "mcp" or connected == [PUBLIC]


@pytest.mark.django_db
@pytest.mark.parametrize("caller", list(CALLS))
def test_s17_a_name_that_leads_here_at_once_is_not_connected(
    monkeypatch: pytest.MonkeyPatch, settings: Any, connected: list[str], caller: str
) -> None:
    settings.FAILSOFT_MCP_SERVERS = {"web": {"url": URL, "timeout_seconds": 2}}
    resolve_in_turn(monkeypatch, [[PUBLIC, PRIVATE]])
    with suppress(SendError, ForbiddenAddressError, RefusedCallError):
        CALLS[caller]()
    assert connected == []


@pytest.mark.parametrize("adapter", ["openai", "anthropic"])
def test_s17_a_name_of_a_provider_that_leads_here_later_is_not_connected(
    monkeypatch: pytest.MonkeyPatch, connected: list[str], adapter: str
) -> None:
    resolve_in_turn(monkeypatch, [[], [PRIVATE]])
    with pytest.raises(ProviderUnavailableError, match="has no address"):
        ask_model(adapter)
    with pytest.raises(RefusedCallError, match="is not a public address"):
        ask_model(adapter)
    assert connected == []

"""Whose request it is, decided before its body is read.

A request of a program counts for the project and key of its Authorization header; without a
live key it is refused. Any other request counts for the network and address of its client.
"""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from typing import NamedTuple

from django.conf import settings
from django.db import OperationalError, connections
from rest_framework.exceptions import AuthenticationFailed

from config.exchange import Message, header_of
from config.held_bodies import Holder
from config.turns import Turn, Turns
from diagnostics.accounts.authentication import REFUSAL, KeyNotCachedError, find_key
from diagnostics.accounts.models import ApiKey
from diagnostics.rest.faults import DATABASE_FAULTS
from diagnostics.web.errors import FOR_PROGRAMS

PROGRAMS, PAGES = "programs", "pages"
# Keys that are not cached are read in threads of their own: others may be busy with bodies.
KEY_THREADS = 2
KEY_SECONDS = 5.0
# Networks as providers assign them, and addresses as one customer has them.
NETWORK_BITS = {4: 24, 6: 48}
ADDRESS_BITS = {4: 32, 6: 64}


class Caller(NamedTuple):
    """Who sends a request, and why it is refused, if it is."""

    lane: str
    holder: Holder
    refusal: Exception | None = None


class Callers:
    """Identifies callers, in the event loop if their keys are cached."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(KEY_THREADS, "keys")
        self._turns = Turns(KEY_THREADS, most_of_lane=KEY_THREADS, most_of_holder=1)

    async def identify(self, scope: Message) -> Caller:
        """Return the caller; the refusal of a program without a live key is part of it."""
        holder = client_of(scope)
        if not scope["path"].startswith(FOR_PROGRAMS):
            return Caller(PAGES, holder)
        try:
            key = await self._find_key(header_of(scope, b"authorization"), holder)
        except DATABASE_FAULTS as error:
            return Caller(PROGRAMS, holder, error)
        if key is None:
            return Caller(PROGRAMS, holder, AuthenticationFailed(REFUSAL))
        return Caller(PROGRAMS, Holder(str(key.project_id), key.key_id))

    async def _find_key(self, header: str, holder: Holder) -> ApiKey | None:
        try:
            return find_key(header, reads=False)
        except KeyNotCachedError:
            pass
        try:
            async with asyncio.timeout(KEY_SECONDS):
                return await self._read_key(header, Turn(PROGRAMS, holder))
        except TimeoutError:
            raise OperationalError("the key could not be read in time") from None

    async def _read_key(self, header: str, turn: Turn) -> ApiKey | None:
        await self._turns.take(turn)
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._threads, _find_in_thread, header
            )
        finally:
            self._turns.release(turn)


def _find_in_thread(header: str) -> ApiKey | None:
    try:
        return find_key(header)
    finally:
        connections.close_all()


def client_of(scope: Message) -> Holder:
    """Return the network and address of the client; trusted proxies forward them."""
    peer, _ = scope.get("client") or ("", 0)
    count = settings.FAILSOFT_TRUSTED_PROXIES
    forwarded = header_of(scope, b"x-forwarded-for").split(",") if count else []
    return _holder_of(forwarded[-count].strip() if len(forwarded) >= count > 0 else peer)


@lru_cache(maxsize=1000)
def _holder_of(text: str) -> Holder:
    try:
        address = ip_address(text)
    except ValueError:
        return Holder(text, text)
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    network, own = (
        ip_network((address, bits[address.version]), strict=False)
        for bits in (NETWORK_BITS, ADDRESS_BITS)
    )
    return Holder(str(network), str(own))

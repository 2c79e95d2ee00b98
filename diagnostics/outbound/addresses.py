"""Which addresses a tool or a notification may connect to.

A name is resolved once, all its addresses must be public, and the connection goes to the
checked address: a name server that answers differently a moment later has no effect.
"""

import socket
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from threading import BoundedSemaphore, Thread
from urllib.parse import urlsplit

Address = IPv4Address | IPv6Address
Resolve = Callable[[str, int], list[str]]

RESOLVE_SECONDS = 5.0
_lookups = BoundedSemaphore(16)
_PORTS = {"http": 80, "https": 443}
# IPv6 ranges that carry an IPv4 address in their last 32 bits, or in bits 16 to 48.
_NAT64 = IPv6Network("64:ff9b::/96")
_COMPATIBLE = IPv6Network("::/96")
# The public range, and its exceptions below. Other IPv6 ranges (a private NAT64 prefix,
# translated IPv4, segments) lead inside, and not every Python version knows them.
_UNICAST = IPv6Network("2000::/3")
_NOT_PUBLIC = (
    IPv6Network("2001::/32"),  # Teredo
    IPv6Network("3fff::/20"),  # documentation
    IPv4Network("192.0.0.0/24"),  # protocols
    IPv4Network("192.88.99.0/24"),  # relays of 6to4
    IPv4Network("168.63.129.16/32"),  # settings and secrets of a virtual machine at Azure
)


class ForbiddenAddressError(Exception):
    """The URL leads to an address that this server may not connect to."""


class PrivateAddressError(ForbiddenAddressError):
    """An address of the URL's host is not public."""


@dataclass(frozen=True, slots=True)
class CheckedAddress:
    """A checked URL: where to connect, and what to request. `spares`: its other addresses."""

    scheme: str
    host: str
    port: int
    address: Address
    path: str
    spares: tuple[Address, ...] = ()

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def pinned_url(self) -> str:
        """The URL with the address in place of the name."""
        address = f"[{self.address}]" if self.address.version == 6 else self.address
        return f"{self.scheme}://{address}:{self.port}{self.path}"


def resolve_host(host: str, port: int, deadline: float | None = None) -> list[str]:
    """Return all addresses of a host, as the system resolves it.

    `deadline` is a time of `time.monotonic`, by default in 5 s; TimeoutError after it. A
    lookup cannot be cancelled: its thread runs until the system gives up, and a process has at
    most 16 such threads.
    """
    end = time.monotonic() + RESOLVE_SECONDS if deadline is None else deadline
    if not _lookups.acquire(timeout=max(end - time.monotonic(), 0)):
        raise TimeoutError("too many names are being looked up")
    result: Future[list[str]] = Future()
    Thread(target=_resolve, args=(host, port, result), daemon=True).start()
    return result.result(max(end - time.monotonic(), 0))


def _resolve(host: str, port: int, answer: Future[list[str]]) -> None:
    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        answer.set_result([str(entry[4][0]) for entry in entries])
    except (OSError, UnicodeError) as error:
        answer.set_exception(error)
    finally:
        _lookups.release()


def choose_target(
    url: str, *, allow_private: bool = False, resolve: Resolve = resolve_host
) -> CheckedAddress:
    """Return where to connect for a URL; raises ForbiddenAddressError with the reason.

    Only http and https, no credentials in the URL, every address public unless
    `allow_private`.
    """
    scheme, host, port, path = _split(url)
    try:
        addresses = [ip_address(text.partition("%")[0]) for text in resolve(host, port)]
    except (OSError, ValueError, UnicodeError):
        raise ForbiddenAddressError(f"{host} cannot be resolved") from None
    if not addresses:
        raise ForbiddenAddressError(f"{host} has no address")
    for address in addresses:
        if not allow_private and not is_public(address):
            raise PrivateAddressError(f"{host} is not a public address")
    return CheckedAddress(scheme, host, port, addresses[0], path, tuple(addresses[1:]))


def is_public(address: Address) -> bool:
    """Whether an address, including one embedded in it, is on the public internet."""
    if isinstance(address, IPv6Address):
        inner = _embedded(address)
        if inner is not None:
            return is_public(inner)
        if address not in _UNICAST:
            return False
    if any(address in network for network in _NOT_PUBLIC):
        return False
    return address.is_global and not address.is_multicast


def _embedded(address: IPv6Address) -> IPv4Address | None:
    if address.ipv4_mapped or address.sixtofour:
        return address.ipv4_mapped or address.sixtofour
    if address in _NAT64 or address in _COMPATIBLE:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return None


def _split(url: str) -> tuple[str, str, int, str]:
    if not url.isprintable() or " " in url or "\\" in url:
        raise ForbiddenAddressError("a URL has no spaces, backslashes or control characters")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise ForbiddenAddressError("this is not a URL") from None
    if parts.scheme not in _PORTS:
        raise ForbiddenAddressError("only http and https URLs are allowed")
    if parts.username is not None or parts.password is not None:
        raise ForbiddenAddressError("credentials in a URL are refused")
    if not host:
        raise ForbiddenAddressError("the URL has no host")
    host = _to_ascii(host)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return parts.scheme, host, _PORTS[parts.scheme] if port is None else port, path


def _to_ascii(host: str) -> str:
    if ":" in host:
        return host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:
        raise ForbiddenAddressError("the host is not a name") from None

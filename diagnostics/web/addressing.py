"""Requests that do not fit the addresses in the settings, and which setting to change.

Mostly a reverse proxy changed a header or left one out. Texts for pages, clients and the log.
"""

from dataclasses import dataclass

# Of a header, as it is quoted.
LONGEST_VALUE = 100
FORWARDED_PROTO = "X-Forwarded-Proto"
FORWARDED_FOR = "X-Forwarded-For"


@dataclass(frozen=True, slots=True)
class AddressMismatch:
    """A header and a setting that do not fit, and what to change."""

    code: str
    setting: str
    seen: str
    expected: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.seen}, but {self.setting} is {self.expected}. {self.remedy}"


def unknown_host(host: str | None, base_url: str) -> AddressMismatch:
    """Return what to say to a request for a host that is not served."""
    return AddressMismatch(
        "unknown_host",
        "FAILSOFT_BASE_URL",
        _quote("Host", host),
        base_url,
        "Add the host to FAILSOFT_ALLOWED_HOSTS, use the address of FAILSOFT_BASE_URL, or let the"
        " proxy pass on the Host header of its client.",
    )


def foreign_origin(origin: str, base_url: str) -> AddressMismatch:
    """Return what to say to a form from a page at another address."""
    return AddressMismatch(
        "foreign_origin",
        "FAILSOFT_BASE_URL",
        _quote("Origin", origin),
        base_url,
        "If people open Failsoft at the first address, set FAILSOFT_BASE_URL to it. Otherwise"
        " another site sent this form.",
    )


def not_secure(proto: str | None, base_url: str) -> AddressMismatch:
    """Return what to say to a request without TLS, as far as the proxy tells.

    `proto` is the X-Forwarded-Proto header.
    """
    return AddressMismatch(
        "not_secure",
        "FAILSOFT_BASE_URL",
        _quote(FORWARDED_PROTO, proto),
        base_url,
        f"Send requests to {base_url}, and let the proxy set {FORWARDED_PROTO} to https. Without"
        " TLS, FAILSOFT_BASE_URL begins with http://.",
    )


def too_few_proxies(forwarded: str, expected: int) -> AddressMismatch:
    """Return what to say if X-Forwarded-For lists fewer addresses than proxies are expected."""
    return AddressMismatch(
        "too_few_proxies",
        "FAILSOFT_TRUSTED_PROXIES",
        _quote(FORWARDED_FOR, forwarded),
        str(expected),
        "Set FAILSOFT_TRUSTED_PROXIES to the number of proxies that add an address to"
        f" {FORWARDED_FOR}, or let each of them add one.",
    )


def _quote(header: str, value: str | None) -> str:
    if value is None:
        return f"The header {header} is missing"
    return f"The header {header} is {value[:LONGEST_VALUE]!r}"

"""Addresses in settings: what each may be, and how it is kept."""

import re
from collections.abc import Container
from typing import Annotated
from urllib.parse import urlsplit

from psycopg import ProgrammingError
from pydantic import AfterValidator

from config.database import database_settings
from config.mail import BACKENDS, check_mail_url

DATABASE_SCHEMES = ("postgres", "postgresql")
HTTP_PORTS = {"http": 80, "https": 443}
HTTP_SCHEMES = tuple(HTTP_PORTS)
BROKER_SCHEMES = ("redis", "rediss", "redis+socket", "amqp", "amqps", "memory")


def _begins_with(addresses: str, schemes: Container[str]) -> AfterValidator:
    def check(value: str) -> str:
        if value and urlsplit(value).scheme not in schemes:
            raise ValueError(f"must begin with {addresses}")
        return value

    return AfterValidator(check)


def _with_port(value: str) -> str:
    """Return an address whose port, if it has one, is a number; the fault does not quote it."""
    try:
        urlsplit(value).port  # noqa: B018 - read on access
    except ValueError:
        raise ValueError("must have a host, and a port from 0 to 65535 if any") from None
    return value


def _postgresql(value: str) -> str:
    try:
        database_settings(value, 0)
    except ProgrammingError:  # its message may hold a part of the password
        raise ValueError(
            "cannot be read; write special characters of user and password as %XX, and give only"
            " parameters of libpq after a question mark"
        ) from None
    return value


def _verified(value: str) -> str:
    """Return a broker's address whose certificate is checked: kombu does not unless it is told."""
    parts = urlsplit(value)
    user, is_split, _ = value.partition("@")
    if parts.fragment or (is_split and any(mark in user.partition("//")[2] for mark in "/?")):
        raise ValueError("cannot be read; write special characters of user and password as %XX")
    if parts.scheme in {"redis", "rediss"} and not re.fullmatch(r"/?\d*", parts.path):
        raise ValueError("must end with the number of a database, as in redis://HOST:6379/0")
    if parts.scheme != "rediss" or "ssl_cert_reqs=" in parts.query:
        return value
    return parts._replace(query=f"{parts.query}&ssl_cert_reqs=required".lstrip("&")).geturl()


def _http(value: str) -> str:
    parts = urlsplit(value)
    if value and (parts.scheme not in HTTP_SCHEMES or not parts.hostname):
        raise ValueError("must be an http:// or https:// address with a host")
    return value.rstrip("/")


def _origin(value: str) -> str:
    """Return an address as browsers send it: in lower case, in ASCII, without a default port."""
    parts = urlsplit(_http(value))
    if parts.path or parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError(
            f"must end after the host and port, as in {parts.scheme}://{parts.hostname}:"
            " pages and API are served at the root of a host, never below a path"
        )
    host = (parts.hostname or "").encode("idna").decode()
    host = f"[{host}]" if ":" in host else host
    is_default = parts.port in {None, HTTP_PORTS[parts.scheme]}
    return f"{parts.scheme}://{host}" + ("" if is_default else f":{parts.port}")


DatabaseAddress = Annotated[
    str, _begins_with("postgresql://", DATABASE_SCHEMES), AfterValidator(_postgresql)
]
BrokerAddress = Annotated[
    str,
    _begins_with("redis://, rediss://, redis+socket://, amqp:// or amqps://", BROKER_SCHEMES),
    AfterValidator(_verified),
    AfterValidator(_with_port),
]
MailAddress = Annotated[
    str,
    _begins_with("smtp://, smtp+tls:// or smtps://", BACKENDS.keys() - {""}),
    AfterValidator(check_mail_url),
]
# Otherwise unchanged: a trailing slash may matter to the receiver.
PingAddress = Annotated[
    str, AfterValidator(_with_port), _begins_with("http:// or https://", HTTP_SCHEMES)
]
HttpAddress = Annotated[str, AfterValidator(_with_port), AfterValidator(_http)]
HttpOrigin = Annotated[str, AfterValidator(_with_port), AfterValidator(_origin)]

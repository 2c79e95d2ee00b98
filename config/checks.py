"""System checks of the settings; each has an id and a hint."""

import base64
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import urlsplit

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register  # noqa: A004
from django.db import connection

from diagnostics.outbound.credentials import CredentialError, check_reference

LOOPBACK_HOSTS = {"localhost", "127.0.0.1", "::1"}
# Values of docs/deployment/ that are to be replaced: hosts that RFC 2606 reserves, and this word.
EXAMPLE_DOMAINS = ("example.org", "example.com", "example.net")
PLACEHOLDER = "CHANGE-ME"
Messages = Iterator[CheckMessage]
SystemCheck = Callable[..., list[CheckMessage]]


def _registered(
    *tags: str, deploy: bool = False
) -> Callable[[Callable[[], Messages]], SystemCheck]:
    def register_check(find: Callable[[], Messages]) -> SystemCheck:
        def check(
            app_configs: Sequence[AppConfig] | None,
            databases: Sequence[str] | None = None,
            **kwargs: object,
        ) -> list[CheckMessage]:
            # Django calls checks of databases without one, too; those connect to none.
            is_asked = Tags.database not in tags or bool(databases)
            return list(find()) if is_asked else []

        register(check, *tags, deploy=deploy)
        return check

    return register_check


@_registered(Tags.urls)
def check_base_url() -> Messages:
    """config.E001: links in mails must not point to the loopback address."""
    host = urlsplit(settings.FAILSOFT_BASE_URL).hostname
    other_hosts = set(settings.ALLOWED_HOSTS) - LOOPBACK_HOSTS
    if other_hosts and host in LOOPBACK_HOSTS:
        yield Error(
            f"FAILSOFT_BASE_URL is {settings.FAILSOFT_BASE_URL}, but other hosts are"
            " served: links in mails would not work.",
            hint="Set FAILSOFT_BASE_URL to the address people use.",
            id="config.E001",
        )


@_registered()
def check_time_limits() -> Messages:
    """config.E002: a running task must not be delivered a second time."""
    soft, hard = (
        settings.FAILSOFT_TASK_SOFT_LIMIT_SECONDS,
        settings.FAILSOFT_TASK_HARD_LIMIT_SECONDS,
    )
    visible = settings.FAILSOFT_BROKER_VISIBILITY_SECONDS
    if not soft < hard < visible:
        yield Error(
            "Time limits must increase: soft limit, hard limit, broker visibility timeout"
            f" are {soft}, {hard} and {visible} s.",
            hint="FAILSOFT_TASK_HARD_LIMIT_SECONDS must lie between the two others.",
            id="config.E002",
        )


@_registered(Tags.database)
def check_database() -> Messages:
    """config.E011, W005: the database stores every character, and writers do not fail each other.

    Checked by `migrate`.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT current_setting('server_encoding'),"
            " current_setting('default_transaction_isolation')"
        )
        encoding, isolation = cursor.fetchone()
    if encoding != "UTF8":
        yield Error(
            f"The encoding of the database is {encoding}: events with other characters would be"
            " refused or damaged.",
            hint="Create the database with ENCODING 'UTF8' TEMPLATE template0.",
            id="config.E011",
        )
    if isolation != "read committed":
        yield Warning(
            f"The default isolation of transactions is {isolation}: events that arrive at the same"
            " time are refused and have to be sent again.",
            hint="ALTER ROLE ... SET default_transaction_isolation = 'read committed'",
            id="config.W005",
        )


@_registered(Tags.security)
def check_secret_key() -> Messages:
    """config.E003: the key that signs sessions must not be guessable."""
    if len(set(settings.SECRET_KEY)) < 16:
        yield Error(
            "FAILSOFT_SECRET_KEY is easy to guess.",
            hint="Use the output of: python -c 'import secrets; print(secrets.token_urlsafe(50))'",
            id="config.E003",
        )


@_registered(Tags.security)
def check_working_key() -> Messages:
    """config.E004: the key that encrypts the working store must be random."""
    key = base64.b64decode(settings.FAILSOFT_WORKING_KEY)
    if key and len(set(key)) < 8:
        yield Error(
            "FAILSOFT_WORKING_KEY is not random.",
            hint="Use the output of: head -c 32 /dev/urandom | base64",
            id="config.E004",
        )


@_registered()
def check_retention() -> Messages:
    """config.E005: details must not outlive events."""
    payloads, events = settings.FAILSOFT_KEEP_PAYLOAD_DAYS, settings.FAILSOFT_KEEP_EVENT_DAYS
    if payloads > events:
        yield Error(
            f"Events are kept {events} days, their details {payloads} days: details must"
            " not outlive events.",
            hint="Raise FAILSOFT_KEEP_EVENT_DAYS or lower FAILSOFT_KEEP_PAYLOAD_DAYS.",
            id="config.E005",
        )


@_registered(Tags.security)
def check_oidc() -> Messages:
    """config.E006, E007, E010, W001: single sign-on is complete, uses TLS, limits domains."""
    issuer = settings.FAILSOFT_OIDC_ISSUER
    if not issuer:
        return
    if not settings.FAILSOFT_OIDC_CLIENT_ID or not settings.FAILSOFT_OIDC_CLIENT_SECRET:
        yield Error(
            "FAILSOFT_OIDC_ISSUER is set without a client.",
            hint="Set FAILSOFT_OIDC_CLIENT_ID, and FAILSOFT_OIDC_CLIENT_SECRET to"
            " env:NAME or file:/path.",
            id="config.E006",
        )
    try:
        check_reference(settings.FAILSOFT_OIDC_CLIENT_SECRET)
    except CredentialError as error:
        yield Error(f"FAILSOFT_OIDC_CLIENT_SECRET: {error}.", id="config.E006")
    parts = urlsplit(issuer)
    if parts.scheme != "https" and parts.hostname not in LOOPBACK_HOSTS:
        yield Error(
            "FAILSOFT_OIDC_ISSUER does not use TLS: anyone on the network path could sign in.",
            hint="Begin with https://",
            id="config.E007",
        )
    if settings.FAILSOFT_OIDC_TRUST_EMAIL and not settings.FAILSOFT_OIDC_ALLOWED_DOMAINS:
        yield Error(
            "FAILSOFT_OIDC_TRUST_EMAIL is set for addresses of any domain: people of the issuer"
            " could sign in with an address of anybody.",
            hint="Set FAILSOFT_OIDC_ALLOWED_DOMAINS to the domains that the issuer manages.",
            id="config.E010",
        )
    if not settings.FAILSOFT_OIDC_ALLOWED_DOMAINS:
        yield Warning(
            "Any domain may sign in through FAILSOFT_OIDC_ISSUER.",
            hint="Set FAILSOFT_OIDC_ALLOWED_DOMAINS=example.org",
            id="config.W001",
        )


@_registered(deploy=True)
def check_mail() -> Messages:
    """config.W002: alerts, reports and password links need a mail server."""
    if not settings.EMAIL_BACKEND.endswith("smtp.EmailBackend"):
        yield Warning(
            "No mail server is set: alerts, reports and password links are not delivered.",
            hint="Set FAILSOFT_EMAIL_URL=smtp+tls://user:password@host:587",
            id="config.W002",
        )


@_registered(Tags.security, deploy=True)
def check_second_factor() -> Messages:
    """config.W003: staff accounts need a second factor."""
    if not settings.FAILSOFT_REQUIRE_MFA:
        yield Warning(
            "Staff may sign in without a second factor.",
            hint="Leave FAILSOFT_REQUIRE_MFA at its default, true.",
            id="config.W003",
        )


@_registered(Tags.security, deploy=True)
def check_placeholders() -> Messages:
    """config.E008: no value of the example environment is left."""
    database = settings.DATABASES["default"]
    values = {
        "DATABASE_URL": (str(database["HOST"]), str(database["PASSWORD"])),
        "BROKER_URL": (urlsplit(settings.BROKER_URL).hostname or "", settings.BROKER_URL),
        "FAILSOFT_BASE_URL": (urlsplit(settings.FAILSOFT_BASE_URL).hostname or "",),
        "FAILSOFT_ALLOWED_HOSTS": settings.ALLOWED_HOSTS,
        "FAILSOFT_EMAIL_URL": (settings.EMAIL_HOST, settings.EMAIL_HOST_PASSWORD),
        "FAILSOFT_EMAIL_FROM": (settings.DEFAULT_FROM_EMAIL.rpartition("@")[2].rstrip(">"),),
    }
    for name, parts in values.items():
        if any(map(_is_placeholder, parts)):
            yield Error(
                f"{name} still has a value of the example.",
                hint="Replace CHANGE-ME and the hosts below example.org.",
                id="config.E008",
            )


def _is_placeholder(value: str) -> bool:
    """Whether a value is a host of documentation, or holds the word to be replaced."""
    host = f".{value.lower()}"
    return PLACEHOLDER in value or host.endswith(tuple(f".{name}" for name in EXAMPLE_DOMAINS))


@_registered(Tags.security, deploy=True)
def check_transport() -> Messages:
    """config.E009, W004: users reach the product over TLS, and their addresses are known."""
    if urlsplit(settings.FAILSOFT_BASE_URL).scheme != "https":
        yield Error(
            f"FAILSOFT_BASE_URL is {settings.FAILSOFT_BASE_URL}: passwords and keys would be sent"
            " without TLS.",
            hint="Put a proxy that terminates TLS in front; begin the address with https://",
            id="config.E009",
        )
    elif not settings.FAILSOFT_TRUSTED_PROXIES:
        yield Warning(
            "FAILSOFT_TRUSTED_PROXIES is 0, but a proxy terminates TLS: limits by address would"
            " count all clients as one.",
            hint="Set FAILSOFT_TRUSTED_PROXIES=1 behind one proxy.",
            id="config.W004",
        )

"""System checks of the settings; each has an id and a hint."""

import base64
from collections.abc import Callable, Iterator, Sequence
from urllib.parse import urlsplit

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register  # noqa: A004

from diagnostics.outbound.credentials import CredentialError, check_reference

# A re-sent event is recognised for so long.
IDENTITY_DAYS = 8
LOOPBACK_HOSTS = {"localhost", "127.0.0.1", "::1"}
Messages = Iterator[CheckMessage]
SystemCheck = Callable[[Sequence[AppConfig] | None], list[CheckMessage]]


def _registered(
    *tags: str, deploy: bool = False
) -> Callable[[Callable[[], Messages]], SystemCheck]:
    """Make a system check of a function that yields what is wrong."""

    def register_one(find: Callable[[], Messages]) -> SystemCheck:
        def check(app_configs: Sequence[AppConfig] | None, **kwargs: object) -> list[CheckMessage]:
            return list(find())

        register(check, *tags, deploy=deploy)
        return check

    return register_one


@_registered(Tags.urls)
def check_base_url() -> Messages:
    """config.E001: a mail to somebody else must not link to this machine's loopback."""
    host = urlsplit(settings.FAILSOFT_BASE_URL).hostname
    named = set(settings.ALLOWED_HOSTS) - LOOPBACK_HOSTS
    if named and host in LOOPBACK_HOSTS:
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
            hint="Set FAILSOFT_TASK_HARD_LIMIT_SECONDS below FAILSOFT_BROKER_VISIBILITY_SECONDS.",
            id="config.E002",
        )


@_registered(Tags.security)
def check_secret_key() -> Messages:
    """config.E003: sessions are signed with something nobody can guess."""
    if len(set(settings.SECRET_KEY)) < 16:
        yield Error(
            "FAILSOFT_SECRET_KEY is easy to guess.",
            hint="Use the output of: python -c 'import secrets; print(secrets.token_urlsafe(50))'",
            id="config.E003",
        )


@_registered(Tags.security)
def check_working_key() -> Messages:
    """config.E004: the working store is encrypted with a random key."""
    key = base64.b64decode(settings.FAILSOFT_WORKING_KEY)
    if key and len(set(key)) < 8:
        yield Error(
            "FAILSOFT_WORKING_KEY is not random.",
            hint="Use the output of: head -c 32 /dev/urandom | base64",
            id="config.E004",
        )


@_registered()
def check_retention() -> Messages:
    """config.E005: details belong to events; an event is not forgotten before its id is."""
    payloads, events = settings.FAILSOFT_KEEP_PAYLOAD_DAYS, settings.FAILSOFT_KEEP_EVENT_DAYS
    if not payloads <= events >= IDENTITY_DAYS:
        yield Error(
            f"Events are kept {events} days, their details {payloads} days: details must"
            f" not outlive events, and events are kept {IDENTITY_DAYS} days at least.",
            hint="Raise FAILSOFT_KEEP_EVENT_DAYS or lower FAILSOFT_KEEP_PAYLOAD_DAYS.",
            id="config.E005",
        )


@_registered(Tags.security)
def check_oidc() -> Messages:
    """config.E006, W001: single sign-on is whole, encrypted, and for one's own people."""
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
    if not settings.FAILSOFT_OIDC_ALLOWED_DOMAINS:
        yield Warning(
            "Any domain may sign in through FAILSOFT_OIDC_ISSUER.",
            hint="Set FAILSOFT_OIDC_ALLOWED_DOMAINS=example.org",
            id="config.W001",
        )


@_registered(deploy=True)
def check_mail() -> Messages:
    """config.W002: alerts, reports and new passwords need a way out."""
    if not settings.EMAIL_BACKEND.endswith("smtp.EmailBackend"):
        yield Warning(
            "No mail server is set: alerts, reports and password links are not delivered.",
            hint="Set FAILSOFT_EMAIL_URL=smtp+tls://user:password@host:587",
            id="config.W002",
        )


@_registered(Tags.security, deploy=True)
def check_second_factor() -> Messages:
    """config.W003: staff change how this is run; a password alone is little."""
    if not settings.FAILSOFT_REQUIRE_MFA:
        yield Warning(
            "Staff may sign in without a second factor.",
            hint="Leave FAILSOFT_REQUIRE_MFA at its default, true.",
            id="config.W003",
        )

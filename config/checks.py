"""System checks of the settings; each has an id and a hint."""

import base64
from collections.abc import Sequence
from urllib.parse import urlsplit

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning, register  # noqa: A004

from diagnostics.outbound.credentials import CredentialError, check_reference

# A re-sent event is recognised for so long.
IDENTITY_DAYS = 8
LOOPBACK_HOSTS = {"localhost", "127.0.0.1", "::1"}


@register(Tags.urls)
def check_base_url(app_configs: Sequence[AppConfig] | None, **kwargs: object) -> list[CheckMessage]:
    """config.E001: a mail to somebody else must not link to this machine's loopback."""
    host = urlsplit(settings.FAILSOFT_BASE_URL).hostname
    named = set(settings.ALLOWED_HOSTS) - LOOPBACK_HOSTS
    if not named or host not in LOOPBACK_HOSTS:
        return []
    return [
        Error(
            f"FAILSOFT_BASE_URL is {settings.FAILSOFT_BASE_URL}, but other hosts are"
            " served: links in mails would lead nowhere.",
            hint="Set FAILSOFT_BASE_URL to the address people use.",
            id="config.E001",
        )
    ]


@register()
def check_time_limits(
    app_configs: Sequence[AppConfig] | None, **kwargs: object
) -> list[CheckMessage]:
    """config.E002: a running task must not be delivered a second time."""
    soft, hard = settings.TASK_SOFT_LIMIT_SECONDS, settings.TASK_HARD_LIMIT_SECONDS
    if soft < hard < settings.BROKER_VISIBILITY_SECONDS:
        return []
    return [
        Error(
            "Time limits must rise: soft limit, hard limit, broker visibility timeout"
            f" are {soft}, {hard} and {settings.BROKER_VISIBILITY_SECONDS} s.",
            hint="Set FAILSOFT_TASK_HARD_LIMIT_SECONDS below FAILSOFT_BROKER_VISIBILITY_SECONDS.",
            id="config.E002",
        )
    ]


@register(Tags.security)
def check_secret_key(
    app_configs: Sequence[AppConfig] | None, **kwargs: object
) -> list[CheckMessage]:
    """config.E003: sessions are signed with something nobody can guess."""
    if len(set(settings.SECRET_KEY)) >= 16:
        return []
    return [
        Error(
            "FAILSOFT_SECRET_KEY is easy to guess.",
            hint="Use the output of: python -c 'import secrets; print(secrets.token_urlsafe(50))'",
            id="config.E003",
        )
    ]


@register(Tags.security)
def check_working_key(
    app_configs: Sequence[AppConfig] | None, **kwargs: object
) -> list[CheckMessage]:
    """config.E004: the working store is encrypted with a random key."""
    key = base64.b64decode(settings.FAILSOFT_WORKING_KEY)
    if not key or len(set(key)) >= 8:
        return []
    return [
        Error(
            "FAILSOFT_WORKING_KEY is not random.",
            hint="Use the output of: head -c 32 /dev/urandom | base64",
            id="config.E004",
        )
    ]


@register()
def check_retention(
    app_configs: Sequence[AppConfig] | None, **kwargs: object
) -> list[CheckMessage]:
    """config.E005: details belong to events; an event is not forgotten before its id is."""
    payloads, events = (
        settings.FAILSOFT_KEEP_PAYLOAD_DAYS,
        settings.FAILSOFT_KEEP_EVENT_DAYS,
    )
    if payloads <= events and events >= IDENTITY_DAYS:
        return []
    return [
        Error(
            f"Events are kept {events} days, their details {payloads} days: details must"
            f" not outlive events, and events are kept {IDENTITY_DAYS} days at least.",
            hint="Raise FAILSOFT_KEEP_EVENT_DAYS or lower FAILSOFT_KEEP_PAYLOAD_DAYS.",
            id="config.E005",
        )
    ]


@register(Tags.security)
def check_oidc(app_configs: Sequence[AppConfig] | None, **kwargs: object) -> list[CheckMessage]:
    """config.E006, W001: single sign-on is whole, encrypted, and for one's own people."""
    issuer = settings.FAILSOFT_OIDC_ISSUER
    if not issuer:
        return []
    found: list[CheckMessage] = []
    if not settings.FAILSOFT_OIDC_CLIENT_ID or not settings.FAILSOFT_OIDC_CLIENT_SECRET:
        found.append(
            Error(
                "FAILSOFT_OIDC_ISSUER is set without a client.",
                hint="Set FAILSOFT_OIDC_CLIENT_ID, and FAILSOFT_OIDC_CLIENT_SECRET to"
                " env:NAME or file:/path.",
                id="config.E006",
            )
        )
    try:
        check_reference(settings.FAILSOFT_OIDC_CLIENT_SECRET)
    except CredentialError as error:
        found.append(Error(f"FAILSOFT_OIDC_CLIENT_SECRET: {error}.", id="config.E006"))
    parts = urlsplit(issuer)
    if parts.scheme != "https" and parts.hostname not in LOOPBACK_HOSTS:
        found.append(
            Error(
                "FAILSOFT_OIDC_ISSUER is not encrypted: anybody on the way could sign in.",
                hint="Begin with https://",
                id="config.E007",
            )
        )
    if not settings.FAILSOFT_OIDC_ALLOWED_DOMAINS:
        found.append(
            Warning(
                "Any domain may sign in through FAILSOFT_OIDC_ISSUER.",
                hint="Set FAILSOFT_OIDC_ALLOWED_DOMAINS=example.org",
                id="config.W001",
            )
        )
    return found


@register(deploy=True)
def check_mail(app_configs: Sequence[AppConfig] | None, **kwargs: object) -> list[CheckMessage]:
    """config.W002: alerts, reports and new passwords need a way out."""
    if settings.EMAIL_BACKEND.endswith("smtp.EmailBackend"):
        return []
    return [
        Warning(
            "No mail server is set: alerts, reports and password links reach nobody.",
            hint="Set FAILSOFT_EMAIL_URL=smtp+tls://user:password@host:587",
            id="config.W002",
        )
    ]


@register(Tags.security, deploy=True)
def check_second_factor(
    app_configs: Sequence[AppConfig] | None, **kwargs: object
) -> list[CheckMessage]:
    """config.W003: staff change how this is run; a password alone is little."""
    if settings.FAILSOFT_REQUIRE_MFA:
        return []
    return [
        Warning(
            "Staff may sign in without a second factor.",
            hint="Leave FAILSOFT_REQUIRE_MFA at its default, true.",
            id="config.W003",
        )
    ]

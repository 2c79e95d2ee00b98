"""System checks of the settings; each has an id and a hint."""

import base64
from collections.abc import Sequence
from urllib.parse import urlsplit

from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, register

# A re-sent event is recognised for so long.
IDENTITY_DAYS = 8
LOOPBACK_HOSTS = {"localhost", "127.0.0.1", "::1"}


@register(Tags.urls)
def check_base_url(
    app_configs: Sequence[AppConfig] | None, **kwargs: object
) -> list[CheckMessage]:
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
    """config.E002: a running task must not be delivered a second time (C1)."""
    soft, hard = settings.TASK_SOFT_LIMIT_SECONDS, settings.TASK_HARD_LIMIT_SECONDS
    if soft < hard < settings.BROKER_VISIBILITY_SECONDS:
        return []
    return [
        Error(
            "Time limits must rise: soft limit, hard limit, broker visibility timeout"
            f" are {soft}, {hard} and {settings.BROKER_VISIBILITY_SECONDS} s.",
            hint="Set FAILSOFT_TASK_HARD_LIMIT_SECONDS below"
            " FAILSOFT_BROKER_VISIBILITY_SECONDS.",
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
            hint="Use the output of: python -c"
            " 'import secrets; print(secrets.token_urlsafe(50))'",
            id="config.E003",
        )
    ]


@register(Tags.security)
def check_working_key(
    app_configs: Sequence[AppConfig] | None, **kwargs: object
) -> list[CheckMessage]:
    """config.E004: the working store is encrypted with a random key (X-17)."""
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

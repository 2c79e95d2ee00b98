from collections.abc import Callable
from typing import Any

import pytest
from django.core.checks import CheckMessage
from pytest_django import Settings

from config import checks


@pytest.mark.parametrize(
    ("check", "bad", "good", "identity"),
    [
        (
            checks.check_base_url,
            {
                "FAILSOFT_BASE_URL": "http://127.0.0.1:8000",
                "ALLOWED_HOSTS": ["failsoft.example.org"],
            },
            {"FAILSOFT_BASE_URL": "https://failsoft.example.org"},
            "config.E001",
        ),
        (
            checks.check_time_limits,
            {"FAILSOFT_TASK_HARD_LIMIT_SECONDS": 1800, "FAILSOFT_BROKER_VISIBILITY_SECONDS": 1800},
            {"FAILSOFT_TASK_HARD_LIMIT_SECONDS": 600},
            "config.E002",
        ),
        (
            checks.check_secret_key,
            {"SECRET_KEY": "ab" * 30},
            {"SECRET_KEY": "abcdefghijklmnopqrstuvwxyz0123456789"},
            "config.E003",
        ),
        (
            checks.check_working_key,
            {"FAILSOFT_WORKING_KEY": "A" * 43 + "="},
            {"FAILSOFT_WORKING_KEY": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="},
            "config.E004",
        ),
        (
            checks.check_placeholders,
            {"FAILSOFT_BASE_URL": "https://failsoft.example.org"},
            {"FAILSOFT_BASE_URL": "https://failsoft.internal"},
            "config.E008",
        ),
        (
            checks.check_transport,
            {"FAILSOFT_BASE_URL": "http://failsoft.internal"},
            {"FAILSOFT_BASE_URL": "https://failsoft.internal", "FAILSOFT_TRUSTED_PROXIES": 1},
            "config.E009",
        ),
        (
            checks.check_transport,
            {"FAILSOFT_BASE_URL": "https://failsoft.internal", "FAILSOFT_TRUSTED_PROXIES": 0},
            {"FAILSOFT_TRUSTED_PROXIES": 1},
            "config.W004",
        ),
    ],
    ids=[
        "base_url",
        "time_limits",
        "secret_key",
        "working_key",
        "placeholders",
        "transport",
        "proxies",
    ],
)
def test_each_check_fires_and_is_silenced_by_a_good_value(
    settings: Settings,
    check: Callable[[Any], list[CheckMessage]],
    bad: dict[str, Any],
    good: dict[str, Any],
    identity: str,
) -> None:
    for name, value in bad.items():
        setattr(settings, name, value)
    (message,) = check(None)
    assert message.id == identity
    assert message.hint
    for name, value in good.items():
        setattr(settings, name, value)
    assert check(None) == []

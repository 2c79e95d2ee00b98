"""The redactor of the process, for texts, JSON and log entries."""

import io
import json
import logging
from random import Random
from uuid import uuid4

import pytest
from django.conf import settings

from diagnostics.redaction import redactor
from diagnostics.redaction.redactor import (
    check_registered_values,
    redact,
    redact_event,
    redact_found,
    redact_json,
    register_passing_secret,
    register_secret,
    register_settings_secrets,
)
from failsoft.redaction import FAILED
from tests.failsoft.redaction.made_up import make

SECRET = "sk-ant-" + make("{alnum:40}", Random(9))[0]


def test_a_registered_value_is_masked_from_then_on() -> None:
    value = make("{word:16}", Random(4))[0]
    assert redact(f"it is {value}") == f"it is {value}"
    assert register_secret(value, "canary")
    assert redact(f"it is {value}") == "it is [REDACTED:canary]"
    assert register_secret(value, "canary")


def test_a_weak_value_is_refused_with_a_warning_that_does_not_tell_it(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redactor, "_weak_kinds", set())
    assert check_registered_values(None) == []
    assert not register_secret("1234567", "weak")
    assert "weak" in caplog.text
    assert "1234567" not in caplog.text
    (told,) = check_registered_values(None)
    assert told.id == "diagnostics.W001"
    assert "weak" in told.msg
    assert "1234567" not in told.msg


def test_the_latest_senders_secret_is_masked_however_many_came_before_it() -> None:
    letters = Random(7)
    secrets = [letters.randbytes(16).hex() for _ in range(redactor.MAX_PASSING + 10)]
    for secret in secrets:
        register_passing_secret(secret, "failsoft_key")
        assert redact(f"key {secret}") == "key [REDACTED:failsoft_key]"
    register_passing_secret(secrets[-1], "failsoft_key")
    assert redact(f"key {secrets[-1]}") == "key [REDACTED:failsoft_key]"


def test_our_own_secret_key_is_masked() -> None:
    register_settings_secrets()
    assert settings.SECRET_KEY not in redact(f"key={settings.SECRET_KEY}")


def test_json_is_masked_in_keys_and_values_and_under_secret_names() -> None:
    value = {
        "api_key": "abc",
        "Authorization": {"scheme": "x", "parts": ["y", 7, None, True]},
        SECRET: [SECRET, {"deep": f"see {SECRET}"}],
        "max_tokens": 512,
        "ratio": 0.5,
        "card": 4_111_111_111_111_111,
        "big": 9_007_199_254_740_991,
        "empty_password": "",
        "id": uuid4(),
    }
    masked = redact_json(value)
    assert isinstance(masked, dict)
    text = json.dumps(masked)
    assert SECRET not in text
    assert masked["api_key"] == "[REDACTED:secret]"
    assert masked["Authorization"] == {
        "scheme": "[REDACTED:secret]",
        "parts": ["[REDACTED:secret]", "[REDACTED:secret]", None, True],
    }
    assert (masked["max_tokens"], masked["ratio"]) == (512, 0.5)
    assert masked["card"] == "[REDACTED:card]"
    assert masked["big"] == 9_007_199_254_740_991
    assert masked["id"] == str(value["id"])


def test_json_beyond_all_bounds_is_cut_off_with_a_marker() -> None:
    deep: object = SECRET
    for _ in range(500):
        deep = [deep]
    assert "[REDACTED:too_large]" in json.dumps(redact_json(deep))


def test_a_redactor_that_cannot_be_built_gives_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redactor, "_keeper", None)
    assert redact_found(SECRET).text == FAILED
    masked = redact_json({"id": 12_345_678_901_234, "n": 3, "ok": True, "x": 0.5})
    assert masked == {FAILED: 0.5}
    assert redact_json([12_345_678_901_234, 3, True]) == [None, 3, True]


def test_s0_46_a_log_entry_is_masked_exceptions_included() -> None:
    entry = {
        "event": f"called with {SECRET}",
        "password": "short",
        "count": 3,
        "exception": f"ValueError: {SECRET}",
        "details": {"body": SECRET},
        "error": ValueError(SECRET),
        "_record": "kept",
    }
    masked = redact_event(None, "info", entry)
    assert SECRET not in str(masked)
    assert (masked["count"], masked["_record"]) == (3, "kept")
    assert masked["password"] == "[REDACTED:secret]"


def test_s0_45_nothing_unredacted_reaches_the_log_stream() -> None:
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(logging.getLogger().handlers[0].formatter)
    logger = logging.getLogger("tests.redacting")
    logger.addHandler(handler)
    try:
        logger.warning("got %s", SECRET)
        try:
            int(SECRET)
        except ValueError:
            logger.exception("failed")
    finally:
        logger.removeHandler(handler)
    lines = stream.getvalue().splitlines()
    assert len(lines) == 2
    assert SECRET not in stream.getvalue()
    assert "[REDACTED:anthropic_key]" in json.loads(lines[1])["exception"]

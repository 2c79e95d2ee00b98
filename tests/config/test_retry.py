from typing import Any

import pytest

from config.retry import settle_retry


@pytest.mark.parametrize(
    ("file", "env", "expected"),
    [
        ({}, {}, 2),
        ({"max_retries": 3}, {}, 3),
        ({"max_attempts": 3}, {}, 3),
        ({"max_retries": 3}, {"CCOS_MAX_PLAN_RETRIES": "1"}, 1),
        ({}, {"FAILSOFT_MAX_ATTEMPTS": "4"}, 4),
        # The same number twice is no contradiction.
        ({}, {"FAILSOFT_MAX_ATTEMPTS": "4", "CCOS_MAX_PLAN_RETRIES": "4"}, 4),
    ],
)
def test_s1_28_environment_beats_file_beats_default(
    file: dict[str, Any], env: dict[str, str], expected: int
) -> None:
    assert settle_retry(file, env)["max_retries"] == expected


@pytest.mark.parametrize("word", ["false", "0", "no", "off", "OFF"])
def test_s1_24_feedback_is_switched_off_by_environment(word: str) -> None:
    policy = settle_retry({}, {"CCOS_PLAN_RETRY_FEEDBACK": word})
    assert policy["send_error_feedback"] is False


@pytest.mark.parametrize(
    ("file", "env", "named"),
    [
        ({}, {"CCOS_MAX_PLAN_RETRIES": "0"}, "CCOS_MAX_PLAN_RETRIES"),
        ({}, {"CCOS_MAX_PLAN_RETRIES": "6"}, "CCOS_MAX_PLAN_RETRIES"),
        ({}, {"CCOS_MAX_PLAN_RETRIES": "two"}, "CCOS_MAX_PLAN_RETRIES"),
        ({}, {"CCOS_PLAN_RETRY_FEEDBACK": "maybe"}, "CCOS_PLAN_RETRY_FEEDBACK"),
        ({"max_retry": 2}, {}, "max_retry"),
        (
            {},
            {"FAILSOFT_MAX_ATTEMPTS": "2", "CCOS_MAX_PLAN_RETRIES": "3"},
            "FAILSOFT_MAX_ATTEMPTS and CCOS_MAX_PLAN_RETRIES",
        ),
    ],
)
def test_a_bad_policy_is_refused_with_its_name(
    file: dict[str, Any], env: dict[str, str], named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        settle_retry(file, env)

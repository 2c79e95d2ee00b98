from datetime import UTC, datetime, timedelta

import pytest

from diagnostics.outbound.retry_after import LONGEST_WAIT, read_retry_after

MINUTE = timedelta(minutes=1)
NOON = datetime(2026, 7, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "wait"),
    [
        pytest.param("", None, id="not named"),
        pytest.param("120", 2 * MINUTE, id="seconds"),
        pytest.param("0.75", timedelta(seconds=0.75), id="a part of a second, as Discord says"),
        pytest.param("Wed, 01 Jul 2026 12:01:00 GMT", MINUTE, id="a date"),
        pytest.param("Wed, 01 Jul 2026 11:00:00 GMT", timedelta(), id="a date of the past"),
        pytest.param("9" * 400, LONGEST_WAIT, id="for ever"),
        pytest.param("Wed, 01 Jul 2099 12:00:00 GMT", LONGEST_WAIT, id="for decades"),
        pytest.param("soon", None, id="nothing that is known"),
    ],
)
def test_a_server_may_ask_to_wait_for_hours_but_not_for_ever(
    text: str, wait: timedelta | None
) -> None:
    assert read_retry_after(text, NOON) == wait

"""`manage.py simulate_alerts`: JSON Lines in and out, whatever the lines are."""

import io
import json
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from django.core.management import CommandError, call_command

NO_FIRES: dict[str, Any] = {"fires": []}


def simulate(
    monkeypatch: pytest.MonkeyPatch, *lines: object, **options: object
) -> list[dict[str, Any]]:
    text = "\n".join(x if isinstance(x, str) else json.dumps(x) for x in lines)
    stdin = SimpleNamespace(buffer=io.BytesIO(text.encode()))
    monkeypatch.setattr("sys.stdin", stdin)
    out = io.StringIO()
    call_command("simulate_alerts", stdout=out, **options)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def outage() -> list[list[object]]:
    random = Random("outage")
    return [[at * 60, random.random() < (0.4 if 600 <= at < 720 else 0.02)] for at in range(1440)]


@pytest.mark.parametrize("detector", ["change", "threshold", "count"])
def test_every_detector_sees_two_bad_hours(monkeypatch: pytest.MonkeyPatch, detector: str) -> None:
    line = {"id": "a", "calls": outage()}
    [answer] = simulate(monkeypatch, line, detector=detector, count=10)
    inside = [fire for fire in answer["fires"] if 36_000 <= fire["at"] < 43_200]
    assert answer["id"] == "a"
    assert inside
    assert inside[0]["onset"] <= inside[0]["at"]
    assert inside[-1]["cleared"] is not None


def test_calls_out_of_order_are_put_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = outage()
    told = {"id": 1, "calls": calls}, {"id": 1, "calls": calls[::-1]}
    one, other = simulate(monkeypatch, *told, detector="change")
    assert one == other


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ({"id": 7}, '"calls"'),
        ({"id": 7, "calls": [[1, True], [2]]}, "calls[1]"),
        ({"id": 7, "calls": [["1", True]]}, "calls[0]"),
        ({"id": 7, "calls": [[True, True]]}, "calls[0]"),
        ('{"id": 7, "calls": [[NaN, true]]}', "calls[0]"),
        ({"id": 7, "calls": [[1, 2]]}, "calls[0]"),
        ({"id": 7, "calls": [], "baseline": 2}, "baseline"),
        ({"id": 7, "calls": [], "baseline": "5 %"}, "baseline"),
    ],
)
def test_a_bad_line_is_answered_and_the_run_goes_on(
    monkeypatch: pytest.MonkeyPatch, line: object, message: str
) -> None:
    good = {"id": 8, "calls": []}
    bad, after = simulate(monkeypatch, line, good, detector="change")
    assert bad["id"] == 7
    assert message in bad["error"]["message"]
    assert bad["error"]["line"] == 1
    assert after == {"id": 8, **NO_FIRES}


def test_what_is_no_json_is_told_with_its_place(monkeypatch: pytest.MonkeyPatch) -> None:
    [answer] = simulate(monkeypatch, '{"id": 1]', detector="change")
    assert (answer["error"]["code"], answer["error"]["column"]) == ("not_json", 9)


@pytest.mark.parametrize(
    "option", ["--limit=1.5", "--budget=0.5", "--count=0", "--within=nan", "--series=x"]
)
def test_a_bad_option_is_refused_by_name(option: str) -> None:
    with pytest.raises(CommandError, match=option.partition("=")[0]):
        call_command("simulate_alerts", "--detector=count", option)

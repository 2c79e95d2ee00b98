"""The bench of one structured call: its server answers everybody, its table tells the ratio."""

import json
import sys
from contextlib import ExitStack
from typing import Any

import pytest

from bench.call import Contender, start, start_server, table
from bench.call_server import PLAN, answer_to
from failsoft.retry.answers import PlannerSchema, Understood, interpret


def read(answer: bytes) -> dict[str, Any]:
    found: Any = json.loads(answer.partition(b"\r\n\r\n")[2])
    message: dict[str, Any] = found["choices"][0]["message"]
    return message


def test_the_instant_provider_answers_in_the_way_it_is_asked() -> None:
    said = read(answer_to(b'{"messages": []}'))
    called = read(answer_to(b'{"tools": [{"function": {"name": "Plan"}}]}'))

    assert json.loads(str(said["content"])) == PLAN
    assert '"Plan"' in json.dumps(called["tool_calls"])
    assert isinstance(interpret(json.dumps(PLAN), "stop", PlannerSchema.PLAN), Understood)


def test_the_table_sets_medians_against_the_floor() -> None:
    dead: Any = None
    contenders = [
        Contender("floor", dead, [1.0, 9.0, 1.0], [1.0, 1.0, 5.0]),
        Contender("ours", dead, [2.0], [3.0]),
    ]

    assert table(contenders)[2:] == [
        "| floor | 1.00 | 1.00 | 1.0 |",
        "| ours | 2.00 | 3.00 | 3.0 |",
    ]


@pytest.mark.slow
def test_a_contender_makes_real_calls_over_loopback() -> None:
    with ExitStack() as stack:
        url = start_server(stack)
        command = [sys.executable, "-P", "bench/call_peers.py", "floor", url]
        walls, cpus = start("floor", command, stack).make(3)

    assert len(walls) == len(cpus) == 3

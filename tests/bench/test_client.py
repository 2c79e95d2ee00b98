"""The bench of an agent's SDKs: contenders make real calls, the table has what is above them."""

import sys
from contextlib import ExitStack
from typing import Any

import pytest

from bench.call import Contender, start, start_server
from bench.client import ROOT, SCRIPT, table


def test_the_table_has_the_cpu_time_above_the_bare_call() -> None:
    dead: Any = None
    contenders = [
        Contender("bare", dead, [1.0, 9.0, 1.0], [1.0, 3.0]),
        Contender("failsoft", dead, [2.0], [3.0]),
    ]
    assert table(contenders)[2:] == [
        "| bare | 1.00 | 2.00 | +0.00 |",
        "| failsoft | 2.00 | 3.00 | +1.00 |",
    ]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bare", "failsoft"])
def test_a_contender_asks_the_instant_provider(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    with ExitStack() as stack:
        command = [sys.executable, "-P", str(SCRIPT), name, start_server(stack)]
        walls, cpus = start(name, command, stack).make(3)
    assert len(walls) == len(cpus) == 3

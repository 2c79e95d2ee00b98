"""Why a page costs what it costs: the shares of its statements, templates and functions."""

import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from cProfile import Profile
from pathlib import Path
from pstats import Stats
from traceback import walk_stack
from typing import Any

from django.db import connection
from django.template import base
from django.test import Client

ROOT = Path(__file__).parents[2]
PRODUCT = tuple(f"{ROOT / name}/" for name in ("agents", "config", "diagnostics", "plans"))
SHOWN = 4
TABLE = re.compile(r'\b(?:FROM|UPDATE|INTO)\s+"?(\w+_\w+)')
# What every sum and page goes through; who asks for it says more.
DOORS = {"fetch", "sum_rollups", "respond", "<listcomp>", "<dictcomp>", "<genexpr>"}


def explain(client: Client, path: str) -> str:
    """Return where a warm view in this process spends its time; functions are of a profile."""
    seconds: dict[str, float] = defaultdict(float)

    def timed(execute: Callable[..., Any], sql: str, *others: Any) -> Any:  # noqa: ANN401 - any row
        began = time.perf_counter()
        result = execute(sql, *others)
        table = TABLE.search(sql)
        seconds[f"{_asker()} of {table[1] if table else sql[:20]}"] += time.perf_counter() - began
        return result

    with connection.execute_wrapper(timed):
        began = time.perf_counter()
        client.get(path)
        whole = time.perf_counter() - began
    profile = Profile()
    profile.runcall(client.get, path)
    statements = f"{sum(seconds.values()) / whole:.0%} of {1000 * whole:.0f} ms in statements"
    functions = dict(_functions(Stats(profile)))
    return f"    {statements}: {_largest(seconds, whole)}\n    of Python: {_largest(functions, 1)}"


def _asker() -> str:
    codes = (frame.f_code for frame, _ in walk_stack(None))
    asked = (code.co_name for code in codes if _is_ours(code.co_filename, code.co_name))
    return next(asked, "Django")


def _is_ours(file: str, name: str) -> bool:
    return file.startswith(PRODUCT) and name not in DOORS


def _functions(stats: Stats) -> Iterator[tuple[str, float]]:
    """Return the shares of our functions, and of templates, with everything that they call."""
    rows = stats.stats  # type: ignore[attr-defined] # figures by file, line and name
    whole = max(cumulative for *_, cumulative, _ in rows.values())
    for (file, _, name), (*_, cumulative, _) in rows.items():
        if file == base.__file__ and name == "_render":
            yield "templates", cumulative / whole
        elif _is_ours(file, name) and cumulative < 0.9 * whole:
            yield name, cumulative / whole


def _largest(seconds: Mapping[str, float], whole: float) -> str:
    rows = sorted(seconds.items(), key=lambda row: -row[1])[:SHOWN]
    return ", ".join(f"{name} {share / whole:.0%}" for name, share in rows)

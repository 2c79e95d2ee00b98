"""What earlier cycles left for the next prompt: one bounded line a step."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from agents.core.fencing import one_line

MAX_OUTPUT_CHARACTERS = 300


def describe_results(cycle: int, results: Iterable[Mapping[str, Any]]) -> list[str]:
    """Say of each step of a run whether it worked and what came out."""
    return [
        f"cycle {cycle}, {row.get('step_id')} ({row.get('tool')}): {_describe_row(row)}"
        for row in results
        if row.get("step_id") != "__meta__"
    ]


def describe_check(cycle: int, decision: str, reason: str | None, reasons: Iterable[str]) -> str:
    """Say what the completion check of a cycle decided, and why."""
    told = "; ".join(one_line(text, MAX_OUTPUT_CHARACTERS) for text in reasons)
    why = told or one_line(reason or "no reason given", MAX_OUTPUT_CHARACTERS)
    return f"cycle {cycle}, completion check: {decision} - {why}"


def describe_answer(question: str, answer: str) -> str:
    """Say what the user was asked and answered."""
    return f"asked the user: {one_line(question, 200)} - answered: {one_line(answer, 2_000)}"


def _describe_row(row: Mapping[str, Any]) -> str:
    if row.get("ok"):
        output = json.dumps(row.get("output"), ensure_ascii=False, default=str)
        return f"ok, {one_line(output, MAX_OUTPUT_CHARACTERS)}"
    state = "skipped" if row.get("skipped") else "failed"
    why = str(row.get("error") or row.get("reason") or "")
    return f"{state}, {one_line(why, MAX_OUTPUT_CHARACTERS)}"

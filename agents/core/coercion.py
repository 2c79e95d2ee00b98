"""Leniency towards a model's types: on the planner's path only, never in silence (X-20)."""

import json
from dataclasses import dataclass
from typing import Any

from agents.core.proposals import KINDS

WRAPPERS = ("plan", "payload", "result", "answer", "response")


@dataclass(frozen=True, slots=True)
class Softened:
    """One leniency: where (a JSON pointer into what the model wrote) and of which kind."""

    path: str
    kind: str


def soften_proposal(value: Any) -> tuple[Any, list[Softened]]:  # noqa: ANN401 - any JSON
    """Read `kind` in any letter case, arguments given as a JSON string, and drop unknown keys."""
    if not isinstance(value, dict):
        return value, []
    done: list[Softened] = []
    soft = dict(value)
    kind = soft.get("kind")
    if isinstance(kind, str) and kind not in KINDS and kind.strip().lower() in KINDS:
        soft["kind"] = kind.strip().lower()
        done.append(Softened("/kind", "letter_case"))
    known = KINDS.get(soft["kind"]) if isinstance(soft.get("kind"), str) else None
    if known is None:
        return soft, done
    for key in [key for key in soft if key not in known.model_fields]:
        del soft[key]
        done.append(Softened(f"/{key}", "unknown_key_dropped"))
    done += _read_arguments(soft, "")
    return soft, done


def soften_plan(value: Any) -> tuple[Any, list[Softened]]:  # noqa: ANN401 - any JSON
    """Unwrap a plan, take a bare list for its steps, and soften each step."""
    plan, done = _unwrap(value)
    if not isinstance(plan, dict) or not isinstance(plan.get("steps"), list):
        return plan, done
    base = "" if isinstance(value, list) else "/steps"
    if done and done[0].kind == "wrapper_key":
        base = f"{done[0].path}/steps"
    steps = []
    for index, step in enumerate(plan["steps"]):
        soft, more = _soften_step(step, f"{base}/{index}")
        steps.append(soft)
        done += more
    return {**plan, "steps": steps}, done


def _unwrap(value: Any) -> tuple[Any, list[Softened]]:  # noqa: ANN401 - any JSON
    if isinstance(value, list):
        return {"steps": value}, [Softened("", "bare_list")]
    if isinstance(value, dict) and "steps" not in value and len(value) == 1:
        (key, inner), *_ = value.items()
        if key in WRAPPERS and isinstance(inner, dict) and "steps" in inner:
            return inner, [Softened(f"/{key}", "wrapper_key")]
    return value, []


def _soften_step(step: Any, path: str) -> tuple[Any, list[Softened]]:  # noqa: ANN401 - any JSON
    if not isinstance(step, dict):
        return step, []
    soft, done = dict(step), []
    if isinstance(soft.get("step_id"), int) and not isinstance(soft["step_id"], bool):
        soft["step_id"] = f"step_{soft['step_id']}"
        done.append(Softened(f"{path}/step_id", "integer_id"))
    if "dependencies" in soft:
        soft["dependencies"], more = _soften_dependencies(
            soft["dependencies"], f"{path}/dependencies"
        )
        done += more
    done += _read_arguments(soft, path)
    if isinstance(soft.get("tool"), dict):
        soft["tool"] = dict(soft["tool"])
        done += _read_arguments(soft["tool"], f"{path}/tool")
    return soft, done


def _soften_dependencies(value: Any, path: str) -> tuple[Any, list[Softened]]:  # noqa: ANN401 - any JSON
    if value is None:
        return [], [Softened(path, "null_for_list")]
    if isinstance(value, str) or (
        isinstance(value, int) and not isinstance(value, bool)
    ):
        value, done = [value], [Softened(path, "scalar_for_list")]
    else:
        done = []
    if not isinstance(value, list):
        return value, done
    numbered = [
        index
        for index, item in enumerate(value)
        if isinstance(item, int) and not isinstance(item, bool)
    ]
    done += [Softened(f"{path}/{index}", "integer_id") for index in numbered]
    return [
        f"step_{item}" if index in numbered else item
        for index, item in enumerate(value)
    ], done


def _read_arguments(holder: dict[str, Any], path: str) -> list[Softened]:
    """Replace `args` given as a JSON string by the object in it."""
    given = holder.get("args")
    if not isinstance(given, str):
        return []
    try:
        read = json.loads(given)
    except (ValueError, RecursionError):
        return []
    if not isinstance(read, dict):
        return []
    holder["args"] = read
    return [Softened(f"{path}/args", "json_string")]

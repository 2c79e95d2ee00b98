"""The contract as JSON Schemas: the rules about shape (docs/contract/).

The schemas accept every document that the validators accept. Rules beyond shape - dependencies,
sequences, sums of counts - are checked by the validators only.
"""

from collections.abc import Sequence
from typing import Any

from failsoft.plans.contract import (
    CONTRACT_VERSION,
    MAX_DEPENDENCIES,
    MAX_STEPS,
    META_STEP_ID,
    TaskStatus,
)
from failsoft.plans.result_rows import COUNTS

DIALECT = "https://json-schema.org/draft/2020-12/schema"
NAMES = ("payload", "results")
_Schema = dict[str, Any]
_TEXT_OR_NULL: _Schema = {"type": ["string", "null"]}
_NAME: _Schema = {"type": "string", "minLength": 1, "pattern": r"\S"}
_SAYS: _Schema = {"type": "string", "pattern": r"\S"}
_COUNT: _Schema = {"type": "integer", "minimum": 0}
_IDS: _Schema = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}


def contract_schema(name: str) -> _Schema:
    """Return the JSON Schema of `payload` or `results`; KeyError for another name."""
    return {"payload": _payload, "results": _results}[name]()


def _object(required: Sequence[str], **properties: object) -> _Schema:
    return {"type": "object", "required": list(required), "properties": properties}


def _head(title: str, description: str) -> _Schema:
    return {
        "$schema": DIALECT,
        "title": title,
        "description": description,
        "x-contract-version": CONTRACT_VERSION,
    }


def _payload() -> _Schema:
    steps = {
        "type": "array",
        "minItems": 1,
        "maxItems": MAX_STEPS,
        "items": {"$ref": "#/$defs/step"},
    }
    tool_call = _object(["name"], name=_NAME, args={"type": "object"})
    return {
        **_head("Plan payload", "What a planner hands to the executor."),
        **_object(["steps"], contract_version=_TEXT_OR_NULL, steps=steps),
        "$defs": {"step": _step(), "tool_call": tool_call},
    }


def _step() -> _Schema:
    dependencies = {"type": "array", "items": {"type": "string"}, "maxItems": MAX_DEPENDENCIES}
    return {
        **_object(
            ["step_id", "tool"],
            step_id={**_NAME, "not": {"const": META_STEP_ID}},
            title=_TEXT_OR_NULL,
            dependencies=dependencies,
            tool={"anyOf": [_NAME, {"$ref": "#/$defs/tool_call"}]},
            args={"type": "object"},
        ),
        # Arguments are in the tool object, or next to a tool name, never in both places.
        "if": {"properties": {"tool": {"type": "object"}}},
        "then": {"properties": {"args": False}},
    }


def _results() -> _Schema:
    rows, is_summary = {"$ref": "#/$defs/rows"}, {"step_id": {"const": META_STEP_ID}}
    return {
        **_head("Execution results", "A row a step, and the summary as the last row."),
        "anyOf": [rows, _object(["results"], results=rows)],
        "$defs": {
            "rows": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "if": {"properties": is_summary},
                    "then": {"$ref": "#/$defs/summary"},
                    "else": {"$ref": "#/$defs/row"},
                },
                "contains": _object(["step_id"], **is_summary),
                "minContains": 1,
                "maxContains": 1,
            },
            "row": _row(),
            "summary": _summary(),
        },
    }


def _row() -> _Schema:
    failed, skipped = {"ok": {"const": False}}, {"skipped": {"const": True}}
    ok = {"ok": {"const": True}, "skipped": {"const": False}, "error": {"type": "null"}}
    has_text = [{"properties": {key: _SAYS}} for key in ("reason", "error")]
    return {
        **_object(
            ["step_id", "tool", "ok", "skipped", "reason", "error"],
            step_id=_NAME,
            tool=_TEXT_OR_NULL,
            ok={"type": "boolean"},
            skipped={"type": "boolean"},
            reason=_TEXT_OR_NULL,
            error=_TEXT_OR_NULL,
            output={},
        ),
        "oneOf": [
            {"properties": ok},
            {"properties": {**failed, **skipped, "reason": _SAYS}},
            {"properties": {**failed, "skipped": {"const": False}}, "anyOf": has_text},
        ],
    }


def _summary() -> _Schema:
    properties: _Schema = {
        "step_id": {"const": META_STEP_ID},
        "ok": {"type": "boolean"},
        "skipped": {"const": False},
        "reason": _TEXT_OR_NULL,
        "task_status": {"enum": [status.value for status in TaskStatus]},
        "stats": _object(COUNTS, **dict.fromkeys(COUNTS, _COUNT)),
        "blocked_steps": _IDS,
        "failed_steps": _IDS,
    }
    return {
        **_object(list(properties), **properties),
        # `ok` is true exactly when every step succeeded; otherwise there is a reason.
        "if": {"properties": {"task_status": {"const": TaskStatus.COMPLETED.value}}},
        "then": {"properties": {"ok": {"const": True}}},
        "else": {"properties": {"ok": {"const": False}, "reason": _SAYS}},
    }

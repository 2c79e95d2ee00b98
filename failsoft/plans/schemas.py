"""The contract as JSON Schemas: what shape alone can tell (docs/contract/).

Whatever the validators accept, the schemas accept; what needs more than shape - dependencies,
sequences, counts that add up - only the validators tell.
"""

from typing import Any

from failsoft.plans.contract import (
    CONTRACT_VERSION,
    MAX_DEPENDENCIES,
    MAX_STEPS,
    META_STEP_ID,
    TaskStatus,
)

DIALECT = "https://json-schema.org/draft/2020-12/schema"
NAMES = ("payload", "results")
_Schema = dict[str, Any]
_TEXT_OR_NULL: _Schema = {"type": ["string", "null"]}
_NAME: _Schema = {"type": "string", "minLength": 1, "pattern": r"\S"}
_COUNT: _Schema = {"type": "integer", "minimum": 0}
_IDS: _Schema = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}


def contract_schema(name: str) -> _Schema:
    """Return the JSON Schema of `payload` or `results`; KeyError for another name."""
    return {"payload": _payload, "results": _results}[name]()


def _head(title: str, about: str) -> _Schema:
    return {
        "$schema": DIALECT,
        "title": title,
        "description": about,
        "x-contract-version": CONTRACT_VERSION,
    }


def _payload() -> _Schema:
    return {
        **_head("Plan payload", "What a planner hands to the executor."),
        "type": "object",
        "required": ["steps"],
        "properties": {
            "contract_version": _TEXT_OR_NULL,
            "steps": {
                "type": "array",
                "minItems": 1,
                "maxItems": MAX_STEPS,
                "items": {"$ref": "#/$defs/step"},
            },
        },
        "$defs": {"step": _step(), "tool_call": _tool_call()},
    }


def _step() -> _Schema:
    return {
        "type": "object",
        "required": ["step_id", "tool"],
        "properties": {
            "step_id": {**_NAME, "not": {"const": META_STEP_ID}},
            "title": _TEXT_OR_NULL,
            "dependencies": {
                "type": "array",
                "items": {"type": "string"},
                "maxItems": MAX_DEPENDENCIES,
            },
            "tool": {"anyOf": [_NAME, {"$ref": "#/$defs/tool_call"}]},
            "args": {"type": "object"},
        },
        # Arguments stand in the tool object or beside a tool's name, never in both places.
        "if": {"properties": {"tool": {"type": "object"}}},
        "then": {"properties": {"args": False}},
    }


def _tool_call() -> _Schema:
    return {
        "type": "object",
        "required": ["name"],
        "properties": {"name": _NAME, "args": {"type": "object"}},
    }


def _results() -> _Schema:
    return {
        **_head("Execution results", "A row a step, and the summary as the last row."),
        "anyOf": [
            {"$ref": "#/$defs/rows"},
            {
                "type": "object",
                "required": ["results"],
                "properties": {"results": {"$ref": "#/$defs/rows"}},
            },
        ],
        "$defs": {
            "rows": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "if": {"properties": {"step_id": {"const": META_STEP_ID}}},
                    "then": {"$ref": "#/$defs/summary"},
                    "else": {"$ref": "#/$defs/row"},
                },
                "contains": {
                    "type": "object",
                    "required": ["step_id"],
                    "properties": {"step_id": {"const": META_STEP_ID}},
                },
                "minContains": 1,
                "maxContains": 1,
            },
            "row": _row(),
            "summary": _summary(),
        },
    }


def _row() -> _Schema:
    says = {"type": "string", "pattern": r"\S"}
    return {
        "type": "object",
        "required": ["step_id", "tool", "ok", "skipped", "reason", "error"],
        "properties": {
            "step_id": _NAME,
            "tool": _TEXT_OR_NULL,
            "ok": {"type": "boolean"},
            "skipped": {"type": "boolean"},
            "reason": _TEXT_OR_NULL,
            "error": _TEXT_OR_NULL,
            "output": {},
        },
        "oneOf": [
            {
                "properties": {
                    "ok": {"const": True},
                    "skipped": {"const": False},
                    "error": {"type": "null"},
                }
            },
            {"properties": {"ok": {"const": False}, "skipped": {"const": True}, "reason": says}},
            {
                "properties": {"ok": {"const": False}, "skipped": {"const": False}},
                "anyOf": [{"properties": {"reason": says}}, {"properties": {"error": says}}],
            },
        ],
    }


def _summary() -> _Schema:
    counts = ("total_steps", "ok", "skipped", "failed")
    return {
        "type": "object",
        "required": [
            "step_id",
            "ok",
            "skipped",
            "reason",
            "task_status",
            "stats",
            "blocked_steps",
            "failed_steps",
        ],
        "properties": {
            "step_id": {"const": META_STEP_ID},
            "ok": {"type": "boolean"},
            "skipped": {"const": False},
            "reason": _TEXT_OR_NULL,
            "task_status": {"enum": [status.value for status in TaskStatus]},
            "stats": {
                "type": "object",
                "required": list(counts),
                "properties": dict.fromkeys(counts, _COUNT),
            },
            "blocked_steps": _IDS,
            "failed_steps": _IDS,
        },
        # True exactly when every step succeeded; otherwise there is a reason.
        "if": {"properties": {"task_status": {"const": TaskStatus.COMPLETED.value}}},
        "then": {"properties": {"ok": {"const": True}}},
        "else": {
            "properties": {"ok": {"const": False}, "reason": {"type": "string", "pattern": r"\S"}}
        },
    }

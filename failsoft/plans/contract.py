"""The plan execution contract: names, shapes, bounds and version.

Documented in docs/architecture/plan-execution-contract.md, with golden cases in
tests/contract/. Every change of meaning increments CONTRACT_VERSION.

The JSON Schemas in `*.schema.json` beside this file accept every document that the validators
accept. Rules beyond shape (dependencies, sequences, sums of counts) only the validators check.
"""

import json
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, JsonValue, StrictBool

CONTRACT_VERSION = "1.3.0"
META_STEP_ID = "__meta__"
# The reason of an ok step whose tool reported a degraded output.
DEGRADED = "degraded"

MAX_PAYLOAD_BYTES = 1024 * 1024
MAX_STEPS = 10_000
MAX_DEPENDENCIES = 256
MAX_DEPTH = 64
MAX_STRING_BYTES = 64 * 1024
MAX_NODES = 200_000
MAX_INTEGER_BITS = 1024
MAX_VIOLATIONS = 100
MAX_OUTPUT_BYTES = 1024 * 1024
MAX_SHOWN_OUTPUT_BYTES = 64 * 1024
MAX_ERROR_CHARACTERS = 2_000


class TaskStatus(StrEnum):
    """The outcome of a whole plan."""

    COMPLETED = "COMPLETED"
    PARTIAL = "PARTIAL"
    FAILED = "FAILED"
    BLOCKED = "BLOCKED"


def task_status(*, total: int, unresolved: int, failed: int, skipped: int) -> TaskStatus:
    """Return the status of a plan from counts of its steps.

    `unresolved` counts steps whose own dependencies could not be resolved; `failed` the
    other steps that ran into a failure. A plan without steps is BLOCKED.
    """
    if unresolved or total == 0:
        return TaskStatus.BLOCKED
    if failed:
        return TaskStatus.FAILED
    return TaskStatus.PARTIAL if skipped else TaskStatus.COMPLETED


class ToolCall(BaseModel):
    """The tool that a step calls, and its arguments."""

    name: Annotated[str, Field(min_length=1)]
    args: dict[str, JsonValue] = {}


class Step(BaseModel):
    """One step of a plan; `args` is for a tool that is given as a name."""

    step_id: Annotated[str, Field(min_length=1)]
    title: str | None = None
    dependencies: Annotated[list[str], Field(max_length=MAX_DEPENDENCIES)] = []
    tool: Annotated[str, Field(min_length=1)] | ToolCall
    args: dict[str, JsonValue] = {}


class PlanPayload(BaseModel):
    """The input of the executor.

    This is the shape for the published JSON Schema; failsoft.plans.validation has every rule.
    """

    contract_version: str | None = None
    steps: Annotated[list[Step], Field(min_length=1, max_length=MAX_STEPS)]


PLAN_KEYS, STEP_KEYS = frozenset(PlanPayload.model_fields), frozenset(Step.model_fields)
TOOL_KEYS = frozenset(ToolCall.model_fields)


class StepResult(NamedTuple):
    """The result of one step: six keys, and `output` when a tool returned.

    Created by this library only, and thousands of times, so it is not validated.
    """

    step_id: str
    tool: str | None
    ok: bool
    skipped: bool = False
    reason: str | None = None
    error: str | None = None
    output: JsonValue = None

    @property
    def reason_code(self) -> str:
        return (self.reason or "").partition(":")[0]

    @property
    def is_degraded(self) -> bool:
        return self.ok and self.reason == DEGRADED

    def as_row(self) -> dict[str, Any]:
        """Return the row in the format of the contract; only an ok step has an output."""
        row: dict[str, Any] = {
            "step_id": self.step_id,
            "tool": self.tool,
            "ok": self.ok,
            "skipped": self.skipped,
            "reason": self.reason,
            "error": self.error,
        }
        if self.ok:
            row["output"] = self.output
        return row


class Stats(BaseModel):
    """Counts of steps; the last three add up to the first."""

    model_config = ConfigDict(frozen=True)

    total_steps: int
    ok: int
    skipped: int
    failed: int


class Meta(BaseModel):
    """The last row of all results: the summary of the plan."""

    model_config = ConfigDict(frozen=True)

    step_id: Literal["__meta__"] = "__meta__"
    ok: StrictBool
    skipped: Literal[False] = False
    reason: str | None = None
    task_status: TaskStatus
    stats: Stats
    blocked_steps: list[str] = []
    failed_steps: list[str] = []

    def as_row(self) -> dict[str, Any]:
        return self.model_dump(mode="json")


NAMES = ("payload", "results")


def contract_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of `payload` or `results`."""
    text = Path(__file__).with_name(f"{name}.schema.json").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema

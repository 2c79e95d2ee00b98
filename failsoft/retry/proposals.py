"""Proposals: the answers of a planner that plans one step at a time."""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

SCHEMA_NAME = "NextStepProposal"
SCHEMA_VERSION = "1"
Name = Annotated[str, Field(min_length=1, max_length=200)]
Text = Annotated[str, Field(max_length=65_536)]


class Need(StrEnum):
    """The kind of input that only the user can provide."""

    INPUT = "input"
    CONFIRMATION = "confirmation"
    SECRET = "secret"  # noqa: S105 - the name of a kind of need, not a value


class _Proposal(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    thought: Text | None = None


class CallTool(_Proposal):
    """Run one registered tool next."""

    kind: Literal["call_tool"] = "call_tool"
    tool: Name
    args: dict[str, Any] = Field(default_factory=dict)


class AskUser(_Proposal):
    """Wait for something that only the user can provide."""

    kind: Literal["ask_user"] = "ask_user"
    question: Annotated[str, Field(min_length=1, max_length=4_000)]
    need: Annotated[Need, Field(strict=False)] = Need.INPUT


class Finish(_Proposal):
    """The goal is reached."""

    kind: Literal["finish"] = "finish"
    answer: Text = ""


NextStepProposal = Annotated[CallTool | AskUser | Finish, Field(discriminator="kind")]
Proposal = CallTool | AskUser | Finish
PROPOSALS: TypeAdapter[Proposal] = TypeAdapter(NextStepProposal)
KINDS: dict[str, type[_Proposal]] = {"call_tool": CallTool, "ask_user": AskUser, "finish": Finish}
PROPOSAL_KEYS = frozenset(name for kind in KINDS.values() for name in kind.model_fields)


def payload_of(decision: dict[str, Any]) -> dict[str, Any] | None:
    """Return the plan of a decision: the plan itself, or one with the step of a proposal.

    None when the planner answered that the goal is reached.
    """
    match decision:
        case {"kind": "finish"}:
            return None
        case {"kind": "call_tool", "tool": tool}:
            call = {"name": tool, "args": decision.get("args", {})}
            return {"steps": [{"step_id": "step_1", "dependencies": [], "tool": call}]}
        case plan:
            return plan

"""The request bodies of the API (docs/http-api.md)."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_core import PydanticCustomError

from agents.goals.state import MAX_ANSWER_CHARACTERS, GoalBudget
from failsoft.actions.entries import TOOLSETS
from failsoft.completion.specification import CheckSpec
from failsoft.events import field_error
from failsoft.json_values import JSON, clean_text, pointer_of
from failsoft.plans.violations import Violation
from failsoft.retry.answers import AnswerSchema
from failsoft.retry.policy import RetryConfig

MAX_GOAL_BYTES = 32 * 1024
MOST_ITERATIONS = 20
REFERENCE_PATTERN = r"^(env:[A-Za-z_][A-Za-z0-9_]*|file:/.+)$"
# Written as null in docs/http-api.md's example or left out: the same.
NULL_MEANS_DEFAULT = frozenset(
    {"retry", "budget", "constraints", "max_iterations", "mode", "runner"}
)

# A text that PostgreSQL cannot store is the name of nothing, and no internal error.
Name = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(clean_text)]


NO_OBJECT = Violation("", "object_type", "expected a JSON object")


class StateConflictError(Exception):
    """The request conflicts with the state of the goal."""


class RequestRefusedError(Exception):
    """what was sent is refused; `errors` names each field"""

    def __init__(self, errors: list[Violation]) -> None:
        super().__init__("; ".join(f"{error.path}: {error.message}" for error in errors))
        self.errors = errors


class _Body(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Constraint(_Body):
    """A condition on the plan; an optional one may be dropped by the last attempt."""

    text: Annotated[str, StringConstraints(min_length=1, max_length=2_000)]
    optional: bool = False


class GoalRequest(_Body):
    """A goal as it is submitted."""

    goal: str
    mode: Literal["plan", "next_step", "actions"] = "plan"
    provider: Name | None = None
    model: Name | None = None
    runner: Literal["inline", "distributed"] = "inline"
    tools: Annotated[list[Name], Field(min_length=1, max_length=100)] | None = None
    constraints: Annotated[list[Constraint], Field(max_length=100)] = []
    toolset: Name | None = None
    retry: dict[str, Any] = {}
    # A plan that runs in every cycle instead of one from a model.
    plan: dict[str, Any] | None = None
    completion_check: CheckSpec | None = None
    max_iterations: Annotated[int, Field(ge=1, le=MOST_ITERATIONS)] = 3
    budget: GoalBudget = GoalBudget()
    correlation_id: Name | None = None

    @field_validator("goal")
    @classmethod
    def _says_something(cls, value: str) -> str:
        if not value.strip():
            raise PydanticCustomError("goal_empty", "say what should be done")
        size = len(value.encode("utf-8", "replace"))
        if size > MAX_GOAL_BYTES:
            limits = {"limit": MAX_GOAL_BYTES, "size": size}
            raise PydanticCustomError("goal_too_long", "at most {limit} bytes, got {size}", limits)
        return value

    @field_validator("retry")
    @classmethod
    def _retries_are_settled(cls, value: dict[str, Any]) -> dict[str, Any]:
        # Kept as sent: it is complete only with the installation's defaults.
        RetryConfig.model_validate(value)
        return value

    @model_validator(mode="after")
    def _fits_its_mode(self) -> Self:
        if self.mode == "actions" and self.completion_check is not None:
            message = "mode actions is done when its actions are applied"
            raise field_error("completion_check", "not_wanted", message)
        if self.mode != "plan" and self.plan is not None:
            raise field_error("plan", "not_wanted", "only mode plan runs a plan")
        return self

    @model_validator(mode="after")
    def _names_its_toolset(self) -> Self:
        """Mode actions requires a toolset and no other tools; other modes have none."""
        if self.mode != "actions":
            if self.toolset is not None:
                raise field_error("toolset", "not_wanted", "only mode actions has a toolset")
            return self
        toolsets = ", ".join(TOOLSETS)
        if self.toolset is None:
            raise field_error("toolset", "missing", f"mode actions needs one of: {toolsets}")
        if self.toolset not in TOOLSETS:
            raise field_error("toolset", "unknown_toolset", f"expected one of: {toolsets}")
        if self.tools is not None:
            message = "mode actions has the tools of its toolset"
            raise field_error("tools", "not_wanted", message)
        return self

    @property
    def asks_model(self) -> bool:
        check = self.completion_check
        return self.plan is None or (check is not None and check.kind == "model")

    def check_as_sent(self) -> JSON:
        """Return the completion check without defaults; None if there is none."""
        check = self.completion_check
        return check.model_dump(exclude_unset=True) if check is not None else None


class AnswerRequest(_Body):
    """The answer to a waiting goal: exactly one of the three."""

    text: (
        Annotated[str, StringConstraints(min_length=1, max_length=MAX_ANSWER_CHARACTERS)] | None
    ) = None
    confirmed: bool | None = None
    secret: Annotated[str, StringConstraints(pattern=REFERENCE_PATTERN, max_length=500)] | None = (
        None
    )

    @model_validator(mode="after")
    def _is_one_answer(self) -> Self:
        if sum(value is not None for value in (self.text, self.confirmed, self.secret)) != 1:
            raise PydanticCustomError(
                "one_answer", "give exactly one of text, confirmed and secret"
            )
        return self

    def describe(self) -> str:
        """Return the answer as the planner's prompt has it: a secret only as its reference."""
        if self.text is not None:
            return self.text
        if self.secret is not None:
            return f"the secret is kept at {self.secret}"
        return "yes, confirmed" if self.confirmed else "no, not confirmed"


class ParseRequest(_Body):
    """An answer of a model for the parse lab: what it says, and what it should say."""

    raw: str
    expected: Annotated[AnswerSchema, Field(alias="schema", strict=False)] = AnswerSchema.NONE
    finish_reason: str | None = None


class ReplayRequest(_Body):
    """A kind of failure whose samples are read again, and how.

    `schema` is plan, next_step, decision, none, actions:TOOLSET, node:NODE (an agent's own) or
    pasted (with `json_schema`); left out, it is the one they were checked against.
    """

    failure: Annotated[int, Field(ge=1, le=2**63 - 1)]
    expected: Annotated[Name | None, Field(alias="schema")] = None
    json_schema: JsonValue = None
    recover: bool = True
    lenient: bool = True
    range: Literal["1h", "6h", "24h", "7d", "30d", "90d"] = "7d"


RequestBody = TypeVar("RequestBody", GoalRequest, AnswerRequest, ParseRequest, ReplayRequest)


def read_request(kind: type[RequestBody], body: object) -> RequestBody:
    """Validate a body; RequestRefusedError names every field that is refused."""
    if not isinstance(body, Mapping):
        raise RequestRefusedError([NO_OBJECT])
    try:
        return kind.model_validate(
            {
                key: value
                for key, value in body.items()
                if key not in NULL_MEANS_DEFAULT or value is not None
            }
        )
    except ValidationError as error:
        raise RequestRefusedError(
            [_field_error(item) for item in error.errors(include_input=False, include_url=False)]
        ) from None


def _field_error(item: Any) -> Violation:  # noqa: ANN401 - pydantic's TypedDict is private to it
    context = item.get("ctx") or {}
    field = (context["field"],) if "field" in context else ()
    location = (*item["loc"], *field)
    return Violation(pointer_of(location), item["type"], item["msg"])

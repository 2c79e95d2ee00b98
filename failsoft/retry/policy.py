"""The retry policy of a planner."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Self

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

MAX_ATTEMPTS_CEILING = 5
ATTEMPT_NAMES = ("max_retries", "max_attempts")

# The three documented presets; options that a preset does not set use their defaults.
PRESETS: Mapping[str, Mapping[str, object]] = {
    # For trials of a weak model: one more call.
    "dev": {"max_retries": 3},
    "prod": {"max_retries": 2},
    # One call only.
    "cost-conscious": {"max_retries": 1},
}


class RetryConfig(BaseModel):
    """The four documented options of the retry loop.

    `max_attempts` is the total of provider calls in a retry loop, the first one included; stored
    and configured policies call it `max_retries`.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, populate_by_name=True, serialize_by_alias=True
    )

    max_attempts: int = Field(
        default=2,
        ge=1,
        le=MAX_ATTEMPTS_CEILING,
        validation_alias=AliasChoices(*ATTEMPT_NAMES),
        serialization_alias=ATTEMPT_NAMES[0],
    )
    send_error_feedback: bool = True
    simplify_on_final_attempt: bool = True
    use_stub_fallback: bool = False

    @model_validator(mode="before")
    @classmethod
    def _accept_one_number_under_two_names(cls, value: Any) -> Any:  # noqa: ANN401 - pydantic hands over anything
        if not isinstance(value, Mapping) or not all(name in value for name in ATTEMPT_NAMES):
            return value
        if value["max_attempts"] != value["max_retries"]:
            raise PydanticCustomError(
                "conflicting_names",
                "max_attempts and max_retries mean the same and have different values",
            )
        return {key: item for key, item in value.items() if key != "max_attempts"}

    @classmethod
    def from_layers(cls, *layers: Mapping[str, object]) -> Self:
        """Merge layers, weakest first: default, file, environment, request.

        Raises pydantic's `ValidationError` naming the key that is out of range or unknown.
        """
        merged: dict[str, object] = {}
        for layer in layers:
            if any(name in layer for name in ATTEMPT_NAMES):
                merged = {key: item for key, item in merged.items() if key not in ATTEMPT_NAMES}
            merged.update(layer)
        return cls.model_validate(merged)


class OutputMode(StrEnum):
    """The output mode that is requested from the provider."""

    TEXT = "text"
    JSON = "json"
    SCHEMA = "schema"
    TOOLS = "tools"


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """All inputs of the retry loop; times in seconds, output in tokens."""

    retry: RetryConfig = field(default_factory=RetryConfig)
    output_mode: OutputMode = OutputMode.TEXT
    last_output_mode: OutputMode = OutputMode.TEXT
    max_output_tokens: int = 1024
    max_output_tokens_ceiling: int = 4096
    temperature: float | None = None
    timeout_seconds: int = 60
    optional_constraints: tuple[str, ...] = ()

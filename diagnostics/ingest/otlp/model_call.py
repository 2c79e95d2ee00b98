"""One model call, read from any convention."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace

from diagnostics.ingest.otlp.answers import Answer


@dataclass(frozen=True, slots=True)
class ModelCall:
    """One model call; `answer` is None if the telemetry omits it."""

    node: str | None = None
    provider: str | None = None
    model: str | None = None
    finish_reason: str | None = None
    output_mode: str | None = None
    max_output_tokens: int | None = None
    temperature: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    served_model: str | None = None
    system_fingerprint: str | None = None
    prompt_version: str | None = None
    answer: Answer | None = field(default=None, repr=False)
    attributes: Mapping[str, str] = field(default_factory=dict)

    def completed_by(self, other: "ModelCall") -> "ModelCall":
        """Return the call with missing fields filled from another convention."""
        missing = {
            item.name: getattr(other, item.name)
            for item in fields(self)
            if getattr(self, item.name) is None
        }
        merged = {**other.attributes, **self.attributes}
        return replace(self, **missing, attributes=merged)

"""A call of a model as a convention tells it; what it does not tell is None."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace


@dataclass(frozen=True, slots=True)
class Call:
    """What is known of one call; `answer` is the text of the first answer."""

    node: str | None = None
    provider: str | None = None
    model: str | None = None
    finish_reason: str | None = None
    output_mode: str | None = None
    max_output_tokens: int | None = None
    temperature: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    answer: str | None = field(default=None, repr=False)
    attributes: Mapping[str, str] = field(default_factory=dict)

    def completed_by(self, other: "Call") -> "Call":
        """Fill what is not known from what another convention tells of the same call."""
        missing = {
            item.name: getattr(other, item.name)
            for item in fields(self)
            if getattr(self, item.name) is None
        }
        more = {**other.attributes, **self.attributes}
        return replace(self, **missing, attributes=more)

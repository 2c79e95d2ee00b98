"""A stored failure as it is shown: the redacted text around its first fault."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from diagnostics.core.excerpt import Excerpt, excerpt
from diagnostics.groups.reading import Sample
from diagnostics.models import Event, EventPayload


@dataclass(frozen=True, slots=True)
class ShownSample:
    """One failure, its place among those that were read, and its neighbours."""

    event: Event
    payload: EventPayload
    number: int
    newer: str | None
    older: str | None

    @property
    def excerpt(self) -> Excerpt | None:
        """The lines around the first fault; None where no text is kept."""
        text = self.payload.raw_output_preview
        return excerpt(text, places_of(self.payload)) if text else None

    @property
    def errors(self) -> Sequence[dict[str, Any]]:
        """Every fault that was found."""
        errors: Sequence[dict[str, Any]] = self.payload.validation_errors
        return errors


def shown_sample(samples: Sequence[Sample], wanted: str) -> ShownSample | None:
    """Give the sample of an event id, else the latest; None without any."""
    if not samples:
        return None
    ids = [str(event.event_id) for event, _ in samples]
    place = ids.index(wanted) if wanted in ids else 0
    return ShownSample(
        *samples[place],
        place + 1,
        ids[place - 1] if place else None,
        ids[place + 1] if place + 1 < len(ids) else None,
    )


def places_of(payload: EventPayload) -> list[tuple[int, int]]:
    """Give line and column of every fault that has them."""
    return [
        (error["line"], error.get("column") or 1)
        for error in payload.validation_errors
        if error.get("line")
    ]

"""Which previews are kept while a project sends more than its spike bound allows."""

from collections.abc import Iterable
from uuid import UUID

from diagnostics.core.events import Event

LOW_BITS = 32


def is_kept(event_id: UUID, share: float) -> bool:
    """Say whether the preview of an event belongs to the share that is kept.

    The same id gives the same answer wherever it is asked, and what a smaller share keeps
    a larger one keeps too.
    """
    return (event_id.int & ((1 << LOW_BITS) - 1)) < share * (1 << LOW_BITS)


def count_sampled_out(events: Iterable[Event], share: float) -> int:
    """Count the events whose preview is not kept."""
    return sum(
        event.raw_output_preview is not None and not is_kept(event.event_id, share)
        for event in events
    )

"""Which previews are kept while a project sends more than its spike bound allows."""

from uuid import UUID

LOW_BITS = 32


def is_kept(event_id: UUID, share: float) -> bool:
    """Say whether the preview of an event belongs to the share that is kept.

    The same id gives the same answer wherever it is asked, and what a smaller share keeps
    a larger one keeps too.
    """
    return (event_id.int & ((1 << LOW_BITS) - 1)) < share * (1 << LOW_BITS)

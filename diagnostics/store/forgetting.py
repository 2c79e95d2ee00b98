"""Deleting events, and removing them from all counts."""

from typing import Any

from diagnostics.store.runs import rebuild_runs
from diagnostics.store.sql import execute_prepared, statement

BATCH = 2_000
OF_REFERENCE = "correlation_id = %(value)s"
OF_MARK = "right(replace(event_id::text, '-', ''), length(%(value)s)) = %(value)s"
OF_IDS = "event_id = ANY(%(value)s)"


def forget_batch(project_id: int, condition: str, value: Any, *, with_identities: bool) -> int:  # noqa: ANN401 - as the condition takes it
    """Delete a batch of matching events in the caller's transaction; return how many."""
    text = statement("forget_events").replace("<<whose>>", condition)
    params = {
        "project": project_id,
        "value": value,
        "with_identities": with_identities,
        "most": BATCH,
    }
    ((count, runs),) = execute_prepared(text, params)
    rebuild_runs(project_id, runs or ())
    return int(count)

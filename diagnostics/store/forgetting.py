"""Taking events out of the tables again, and out of everything that counts them."""

from typing import Any

from diagnostics.store.runs import rebuild_runs
from diagnostics.store.sql import execute_prepared, statement

BATCH = 2_000
OF_REFERENCE = "correlation_id = %(told)s"
OF_MARK = "right(replace(event_id::text, '-', ''), length(%(told)s)) = %(told)s"
OF_IDS = "event_id = ANY(%(told)s)"


def forget_batch(project_id: int, whose: str, told: Any, *, with_identities: bool) -> int:  # noqa: ANN401 - as the condition takes it
    """Delete some of the events that meet a condition, in the caller's transaction; how many."""
    text = statement("forget_events").replace("<<whose>>", whose)
    asked = {"project": project_id, "told": told, "with_identities": with_identities, "most": BATCH}
    ((count, runs),) = execute_prepared(text, asked)
    rebuild_runs(project_id, runs or ())
    return int(count)

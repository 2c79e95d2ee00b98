"""The one door to pre-counted runs: redacted, each row once, counted in the same statement."""

import json
from collections.abc import Sequence

from diagnostics.core.outcomes import Outcome, make_outcome_row, texts_of
from diagnostics.redaction.redacting import redact_name
from diagnostics.storage.executing import execute


def record_outcomes(project_id: int, outcomes: Sequence[Outcome]) -> list[str]:
    """Store outcomes in one statement; a status each: created, duplicate or conflict.

    The same (source, minute, sequence) with the same counts again is a duplicate, with
    other counts a conflict that changes nothing.
    """
    if not outcomes:
        return []
    rows = [
        make_outcome_row(index, outcome, _redacted(outcome))
        for index, outcome in enumerate(outcomes)
    ]
    asked = {"project": project_id, "rows": json.dumps(rows, ensure_ascii=False)}
    return [status for _, status in execute("record_outcomes", asked)]


def _redacted(outcome: Outcome) -> dict[str, str | None]:
    return {
        name: None if text is None else redact_name(text)
        for name, text in texts_of(outcome).items()
    }

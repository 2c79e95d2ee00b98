"""Verdicts for pages, kept for a moment: many look at the same one, and look again."""

from datetime import datetime

from diagnostics.core.selection import Selection
from diagnostics.queries.kept_answers import Kept, KeptAnswers
from diagnostics.verdicts.judging import Verdict, verdict_of

_verdicts: KeptAnswers[Verdict] = KeptAnswers()


def recent_verdict_of(project_id: int, selection: Selection, now: datetime) -> Verdict:
    """Give the verdict of a selection as it was a moment ago."""
    return kept_verdict_of(project_id, selection, now).answer


def kept_verdict_of(project_id: int, selection: Selection, now: datetime) -> Kept[Verdict]:
    """Give the verdict of a selection, and when it was made.

    It is FAILSOFT_VERDICT_SECONDS old, or a little more while it is judged anew beside the
    request; what was decided or posted shows within that time. Conditions that no count
    can meet make no other verdict.
    """
    return _verdicts.get(
        (project_id, selection.counted.query()),
        now,
        lambda at: verdict_of(project_id, selection, at),
    )

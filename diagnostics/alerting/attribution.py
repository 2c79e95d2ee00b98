"""What slices that fire are put down to: the verdict of the project, or one of their own."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db import DatabaseError, transaction

from diagnostics.alerting.correlation import Blame
from diagnostics.alerting.signals import Slice
from diagnostics.selection.fields import SERIES_FIELDS
from diagnostics.selection.selection import Selection
from diagnostics.verdict.statuses import stored_statuses
from diagnostics.verdict.verdicts import kept_form, verdict_of

logger = structlog.get_logger(__name__)

DAY = timedelta(days=1)
DEGRADING = "degrading"
MOST_OWN = 5
"""Verdicts of single slices that one look may ask for."""


@dataclass(slots=True)
class VerdictCache:
    """Verdicts as of one moment, each asked for once."""

    project_id: int
    slot: datetime
    now: datetime
    _known: dict[tuple[tuple[str, str | None], ...], dict[str, Any]] = field(default_factory=dict)

    def blame(self, values: Slice) -> tuple[Blame, dict[str, Any]]:
        """Return what a slice's trouble comes from, and the verdict that says so.

        That of the project's causes which names this slice; else one of the slice's own.
        """
        verdict = _about(self.verdict({}), values)
        if verdict is None:
            own = self.verdict(values)
            verdict = _about(own, values) or own
        verdict = {name: part for name, part in verdict.items() if name != "incidents"}
        cause = str(verdict.get("cause") or "")
        value = str(verdict.get("cause_value") or "")
        return Blame(cause, value, values.get("provider"), values.get("model")), verdict

    def verdict(self, values: Slice) -> dict[str, Any]:
        """Return the verdict of the day that ends at this moment, of some calls."""
        asked = {name: values[name] for name in SERIES_FIELDS if name in values}
        key = tuple(sorted(asked.items()))
        if key not in self._known:
            if len(self._known) > MOST_OWN:
                return {}
            self._known[key] = self._ask(asked)
        return self._known[key]

    def _ask(self, asked: Slice) -> dict[str, Any]:
        end = self.slot + timedelta(minutes=1)
        if not asked and (stored := stored_statuses(self.project_id, end)):
            return kept_form(stored.verdict)
        selection = Selection(filters=asked, begin=end - DAY, end=end)
        try:
            with transaction.atomic():
                return kept_form(verdict_of(self.project_id, selection, self.now))
        except (DatabaseError, ArithmeticError) as error:
            # An alert without its reasons is better than none.
            logger.exception("verdict_failed", error=type(error).__name__)
            return {}


def since_of(verdict: Mapping[str, Any]) -> datetime | None:
    """Return the onset that a kept verdict names; None where it names none."""
    try:
        since = datetime.fromisoformat(str(verdict.get("since")))
    except ValueError:
        return None
    return since if since.tzinfo else None


def _about(verdict: dict[str, Any], values: Slice) -> dict[str, Any] | None:
    """Return the cause that a slice is put down to: the one that names most of it."""
    causes = verdict.get("incidents") or [verdict]
    fitting = [one for one in causes if _is_about(one, values)]
    return max(
        fitting,
        key=lambda one: sum(one.get(name) is not None for name in SERIES_FIELDS),
        default=None,
    )


def _is_about(verdict: dict[str, Any], values: Slice) -> bool:
    """Whether a verdict degrades and what it is about includes a slice."""
    if verdict.get("state") != DEGRADING or verdict.get("cause") in (None, "mixed"):
        return False
    said = ((verdict.get(name), values.get(name)) for name in SERIES_FIELDS)
    return all(one is None or mine is None or one == mine for one, mine in said)


def common(slices: Iterable[Slice]) -> dict[str, str | None]:
    """Return the values that slices share."""
    first, *others = [dict(one) for one in slices]
    return {
        name: value
        for name, value in first.items()
        if all(name in one and one[name] == value for one in others)
    }

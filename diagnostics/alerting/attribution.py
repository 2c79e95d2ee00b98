"""What slices that fire are put down to: the verdict of the project, or one of their own."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import structlog
from django.db import DatabaseError, transaction

from diagnostics.alerting.correlation import Attribution
from diagnostics.alerting.signals import Slice
from diagnostics.alerting.statuses import stored_statuses, verdict_within
from diagnostics.selection.fields import SERIES_FIELDS
from diagnostics.selection.selection import Selection
from diagnostics.verdict.verdicts import Verdict, stored_form

logger = structlog.get_logger(__name__)

DAY = timedelta(days=1)
MOST_OWN = 5
"""Verdicts of single slices that one evaluation may ask for."""
SliceKey = tuple[tuple[str, str | None], ...]


@dataclass(slots=True)
class VerdictCache:
    """Verdicts as of one moment, each asked for once."""

    project_id: int
    slot: datetime
    now: datetime
    _known: dict[SliceKey, Verdict | None] = field(default_factory=dict)

    def attribute(self, values: Slice) -> tuple[Attribution, dict[str, Any]]:
        """Return what a slice's trouble comes from, and the verdict that says so.

        That of the project's causes which touches this slice; else one of the slice's own.
        """
        verdict = self.cause_of(values) or self._verdict(values)
        if verdict is None:
            return attribution_of(values, None), {}
        kept = stored_form(verdict)
        del kept["incidents"]
        return attribution_of(values, verdict), kept

    def cause_of(self, values: Slice) -> Verdict | None:
        """Return which of the project's causes a slice is put down to.

        Of those that touch it the one that names most of it, the gravest of equal ones.
        """
        whole = self._verdict({})
        causes = (whole, *whole.others) if whole else ()
        touching = [cause for cause in causes if cause.since and touches(cause, values)]
        return max(
            touching,
            key=lambda cause: sum(name is not None for name in cause.who or ()),
            default=None,
        )

    def _verdict(self, values: Slice) -> Verdict | None:
        """Return the verdict of the day that ends at this moment, of some calls."""
        values_asked = {name: values[name] for name in SERIES_FIELDS if name in values}
        key = tuple(sorted(values_asked.items()))
        if key not in self._known:
            if len(self._known) > MOST_OWN:
                return None
            self._known[key] = self._ask(values_asked)
        return self._known[key]

    def _ask(self, values: Slice) -> Verdict | None:
        end = self.slot + timedelta(minutes=1)
        if not values and (stored := stored_statuses(self.project_id, end)):
            return stored.verdict
        selection = Selection(filters=values, begin=end - DAY, end=end)
        try:
            with transaction.atomic():
                return verdict_within(self.project_id, selection, self.now)
        except (DatabaseError, ArithmeticError) as error:
            # An alert without its reasons is better than none.
            logger.exception("verdict_failed", error=type(error).__name__)
            return None


def attribution_of(values: Slice, verdict: Verdict | None) -> Attribution:
    """Return what a verdict puts a slice down to."""
    cause, value = (verdict.finding.cause or "", verdict.finding.value) if verdict else ("", "")
    return Attribution(str(cause), value, values.get("provider"), values.get("model"))


def touches(verdict: Verdict, values: Slice) -> bool:
    """Whether a series that a verdict is about is part of a slice."""
    named = [name for name in SERIES_FIELDS if name in values]
    return any(all(getattr(who, name) == values[name] for name in named) for who in verdict.touched)

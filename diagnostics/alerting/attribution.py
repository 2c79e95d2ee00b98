"""What a slice that fires is put down to, and which incident it belongs to.

It is put down to a cause of the project's verdict, or to one of its own verdict.

1. One whose provider has an outage takes in every slice of that provider, while it is open.
2. A slice with the cause of an open incident joins it. Where nobody knows the cause yet,
   slices that fire within two minutes are one incident: two troubles seldom begin together.
3. A slice of a model that an open incident is about already joins it, unless both have a
   cause and these differ.
4. A slice that fires again within an hour of its recovery reopens the incident it was in,
   unless both have a cause and these differ.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import structlog
from django.db import DatabaseError, transaction

from diagnostics.alerting.incident_models import NAMELESS, Incident
from diagnostics.alerting.signals import Slice
from diagnostics.alerting.states import RELAPSE_SECONDS
from diagnostics.alerting.statuses import stored_statuses, verdict_within
from diagnostics.selection.fields import SERIES_FIELDS
from diagnostics.selection.selection import Selection
from diagnostics.verdict.verdicts import StoredVerdict, Verdict, stored_form

logger = structlog.get_logger(__name__)

DAY = timedelta(days=1)
MOST_OWN = 5
"""Verdicts of single slices that one evaluation may ask for."""
SliceKey = tuple[tuple[str, str | None], ...]
JOINS = timedelta(minutes=2)
REOPENS = timedelta(seconds=RELAPSE_SECONDS)
"""So long after an incident ended by itself it is the same one that comes back."""
OUTAGE = "provider_outage"
UNCLEAR = NAMELESS | {"mixed"}
"""Verdicts that name no single thing."""


@dataclass(frozen=True, slots=True)
class Attribution:
    cause: str
    value: str
    provider: str | None = None
    model: str | None = None

    @property
    def is_clear(self) -> bool:
        return self.cause not in UNCLEAR


def find_incident(
    attribution: Attribution, now: datetime, incidents: Iterable[Incident]
) -> Incident | None:
    """Return the open incident that a slice joins; None when it is one of its own."""
    latest_first = sorted(incidents, key=lambda incident: incident.fired_at, reverse=True)
    for joins in (_is_in_outage, _is_same_verdict, _is_same_model):
        for incident in latest_first:
            if joins(attribution, now, incident):
                return incident
    return None


def is_back(attribution: Attribution, now: datetime, incident: Incident) -> bool:
    """Whether a slice that fires again goes on with the incident that it was in."""
    is_other = (
        attribution.is_clear
        and incident.cause not in UNCLEAR
        and (attribution.cause, attribution.value) != (incident.cause, incident.cause_value)
    )
    ended = incident.cleared_at
    return ended is not None and now - ended <= REOPENS and not is_other


def _is_in_outage(attribution: Attribution, _: datetime, incident: Incident) -> bool:
    return incident.cause == OUTAGE and incident.cause_value == attribution.provider is not None


def _is_same_verdict(attribution: Attribution, now: datetime, incident: Incident) -> bool:
    if not attribution.is_clear:
        return incident.cause in UNCLEAR and now - incident.fired_at <= JOINS
    return (attribution.cause, attribution.value) == (incident.cause, incident.cause_value)


def _is_same_model(attribution: Attribution, _: datetime, incident: Incident) -> bool:
    is_known = attribution.is_clear and incident.cause not in UNCLEAR
    if is_known and incident.cause != attribution.cause:
        return False
    model = attribution.provider, attribution.model
    return attribution.model is not None and model in incident.touched_models


@dataclass(slots=True)
class VerdictCache:
    """Verdicts as of one moment, each asked for once."""

    project_id: int
    slot: datetime
    now: datetime
    _known: dict[SliceKey, Verdict | None] = field(default_factory=dict)

    def attribute(self, first: Slice, *others: Slice) -> tuple[Attribution, StoredVerdict]:
        """Return what the trouble of slices comes from, and the verdict that says so.

        That of the project's causes which touches them; else one of the first slice's own.
        """
        verdict = self.cause_of(first, *others) or self._verdict(first)
        if verdict is None:
            return attribution_of(first, None), StoredVerdict()
        return attribution_of(first, verdict), stored_form(verdict)

    def cause_of(self, *slices: Slice) -> Verdict | None:
        """Return which of the project's causes slices are put down to.

        The one that touches most of them; of equal ones that which names most, the gravest.
        """
        whole = self._verdict({})
        causes = whole.causes if whole else ()

        def rank(cause: Verdict) -> tuple[int, int]:
            touched = sum(cause.touches(values) for values in slices)
            return touched, sum(name is not None for name in cause.who or ())

        best = max(causes, key=rank, default=None)
        return best if best and rank(best)[0] else None

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
    cause, value = (verdict.finding.cause or "", verdict.finding.value) if verdict else ("", "")
    return Attribution(str(cause), value, values.get("provider"), values.get("model"))

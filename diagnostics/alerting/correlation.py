"""Which incident a slice that fires belongs to.

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

JOIN_SECONDS = 120
REOPEN_SECONDS = 3600
"""So long after an incident ended by itself it is the same one that comes back."""
OUTAGE = "provider_outage"
NAMELESS = frozenset({"", "not_enough_data"})
UNCLEAR = NAMELESS | {"mixed"}
"""Verdicts that name no single thing."""


@dataclass(frozen=True, slots=True)
class Attribution:
    """What a slice's trouble is put down to, and whose it is."""

    cause: str
    value: str
    provider: str | None = None
    model: str | None = None

    @property
    def is_clear(self) -> bool:
        """Whether it names something."""
        return self.cause not in UNCLEAR


@dataclass(frozen=True, slots=True)
class OpenIncident:
    """An open incident: what it was put down to and which models it is about."""

    id: int
    fired_at: float
    cause: str
    value: str
    models: frozenset[tuple[str | None, str | None]] = field(default=frozenset())


def find_incident(
    attribution: Attribution, now: float, incidents: Iterable[OpenIncident]
) -> OpenIncident | None:
    """Return the open incident that a slice joins; None when it is one of its own."""
    latest_first = sorted(incidents, key=lambda incident: incident.fired_at, reverse=True)
    for joins in (_is_in_outage, _is_same_verdict, _is_same_model):
        for incident in latest_first:
            if joins(attribution, now, incident):
                return incident
    return None


def is_back(attribution: Attribution, ended_at: float, cause: str, value: str, now: float) -> bool:
    """Whether a slice that fires again goes on with the incident that it was in."""
    is_other = (
        attribution.is_clear
        and cause not in UNCLEAR
        and (attribution.cause, attribution.value) != (cause, value)
    )
    return now - ended_at <= REOPEN_SECONDS and not is_other


def _is_in_outage(attribution: Attribution, _: float, incident: OpenIncident) -> bool:
    return incident.cause == OUTAGE and incident.value == attribution.provider is not None


def _is_same_verdict(attribution: Attribution, now: float, incident: OpenIncident) -> bool:
    if not attribution.is_clear:
        return incident.cause in UNCLEAR and now - incident.fired_at <= JOIN_SECONDS
    return (attribution.cause, attribution.value) == (incident.cause, incident.value)


def _is_same_model(attribution: Attribution, _: float, incident: OpenIncident) -> bool:
    is_known = attribution.is_clear and incident.cause not in UNCLEAR
    if is_known and incident.cause != attribution.cause:
        return False
    model = attribution.provider, attribution.model
    return attribution.model is not None and model in incident.models


def widest_of(slices: Iterable[str]) -> list[str]:
    """Return the names of slices without those that are part of another one."""
    every = list(dict.fromkeys(slices))
    wider = tuple(f"{name}{more}" for name in every for more in (", ", " in "))
    return [name for name in every if not name.startswith(wider)]

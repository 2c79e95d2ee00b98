"""The head of the Now page: a card for each open incident, and what has no incident yet."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl

from diagnostics.alerting.attribution import touches
from diagnostics.alerting.incident_charts import began, small_charts
from diagnostics.alerting.incident_models import Incident
from diagnostics.alerting.incident_records import is_kept
from diagnostics.alerting.incident_rows import active_silences, is_incident_silenced
from diagnostics.alerting.incident_views import headline_of
from diagnostics.alerting.notification_facts import AdviceLine, advice_of, rate_of
from diagnostics.alerting.severity import rank
from diagnostics.alerting.wording import STATES, name_slices
from diagnostics.figures import listed, plural, rate_percent
from diagnostics.ingest.key_counts import count_late
from diagnostics.queries.call_counts import kind_filter
from diagnostics.selection.selection import Selection, read_selection
from diagnostics.verdict.verdicts import Verdict
from diagnostics.verdict.wording import since_of
from diagnostics.web.charts.marks import Tone
from diagnostics.web.charts.series import SeriesChart

MOST_CARDS, MOST_OPEN, MOST_NAMED = 3, 50, 3
SILENCE_HOURS = (1, 4, 8, 24)
LATE_SPAN = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class CauseCard:
    """An open incident as a card: what, since when, us or them, what to change."""

    incident: Incident
    headline: Sequence[str | datetime]
    why: Sequence[str | datetime]
    since: datetime
    chart: SeriesChart
    is_silenced: bool

    @property
    def badge(self) -> tuple[Tone, str]:
        """Tone and word of its state."""
        return STATES[self.incident.state]

    @property
    def has_curve(self) -> bool:
        """Whether anything was counted in the time that is drawn."""
        return any(slot.runs for slot in self.chart.slots)

    @property
    def advice(self) -> Sequence[AdviceLine]:
        """What to change, with its evidence; the first is shown, the others are counted."""
        return advice_of(self.incident.latest_verdict)

    @property
    def calls(self) -> str:
        """How many calls failed, where the sentence counts runs; of calls it says both."""
        beside = self.incident.latest_verdict.get("beside") or {}
        if beside.get("counted") != "calls":
            return ""
        failed = f"{rate_percent(beside['rate'])} of {plural(beside['count'], 'call')} failed"
        usual = beside["baseline"]
        return f"{failed} (baseline {rate_percent(usual)})" if usual is not None else failed

    @property
    def affected(self) -> str:
        """The affected series."""
        return listed(name_slices(one.slice for one in self.incident.slices.all()), MOST_NAMED)

    @property
    def failures(self) -> str:
        """The query of the failures page."""
        kind = self.incident.latest_verdict.get("top_kind")
        narrowed = read_selection(dict(parse_qsl(self.incident.filter)))
        return narrowed.query_for(**({"kind": kind_filter(kind)} if kind else {}))


def causes_of(
    project_id: int, selection: Selection, verdict: Verdict, now: datetime
) -> Mapping[str, Any]:
    """Return the cards of the open incidents that a selection touches, the gravest first.

    With them the causes of the verdict that have no incident yet; at most eight queries.
    """
    rows = Incident.objects.filter(project_id=project_id, cleared_at__isnull=True)
    latest = rows.select_related("acknowledged_by", "assignee").prefetch_related("slices")
    known = list(latest.order_by("-fired_at", "-pk")[:MOST_OPEN])
    kept = sorted((one for one in known if _is_shown(one, selection)), key=_place)
    shown = kept[:MOST_CARDS]
    charts = small_charts(project_id, shown, now)
    silences = active_silences(project_id, now) if shown else []
    suspected = [
        one
        for one in ((verdict, *verdict.others) if verdict.since else ())
        if not any(_is_about(known_one, one, selection) for known_one in known)
    ]
    return {
        "cards": [
            CauseCard(
                one,
                *headline_of(one),
                began(one),
                charts[one.pk],
                is_incident_silenced(one, now, silences),
            )
            for one in shown
        ],
        "open_count": len(kept),
        "more": len(kept) - len(shown),
        "suspected": suspected,
        # Why no alert may have fired.
        "late": count_late(project_id, now - LATE_SPAN) if suspected else 0,
        "hours": SILENCE_HOURS,
    }


def title_of_page(causes: Mapping[str, Any], calm: str) -> str:
    """Return what the title says: how many incidents are open and of what, else the calm line."""
    cards = causes["cards"]
    if not cards:
        return calm
    names = ", ".join(card.incident.title for card in cards)
    return f"{plural(causes['open_count'], 'open incident')}: {names}"


def _is_shown(one: Incident, selection: Selection) -> bool:
    has_begun = selection.end is None or one.onset < selection.end
    return has_begun and is_kept(one, selection.terms)


def _place(one: Incident) -> tuple[int, float, float]:
    """By severity, then by how many failed beyond the baseline, then the latest first."""
    rate = rate_of(one.latest_verdict)
    excess = (rate.share - (rate.baseline or 0.0)) * rate.n if rate else 0.0
    return -rank(one.severity), -excess, -one.fired_at.timestamp()


def _is_about(incident: Incident, cause: Verdict, selection: Selection) -> bool:
    """Whether a cause of the verdict is the one of an incident.

    One that a filter narrows, or that has no cause yet, is known by its series.
    """
    if (incident.cause, incident.cause_value) == (str(cause.finding.cause), cause.finding.value):
        return True
    is_named = since_of(incident.latest_verdict) and not selection.terms
    return not is_named and any(touches(cause, one.slice) for one in incident.slices.all())

"""The wallboard: open incidents and the state of each model, in large type, without a session."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from django_htmx.http import HttpResponseClientRefresh

from diagnostics import clock
from diagnostics.accounts.wallboards import find_wallboard
from diagnostics.alerting.incident_models import Incident
from diagnostics.analysis.status import SeriesState, SeriesStatus
from diagnostics.queries.matrix import name_of
from diagnostics.selection.selection import Selection
from diagnostics.verdict.statuses import read_statuses
from diagnostics.verdict.wording import SERIES_TONES, sentence_of, state_words
from diagnostics.web.access import STATEMENT_SECONDS, limited_statements
from diagnostics.web.charts.marks import Tone

MOST_INCIDENTS, MOST_MODELS = 4, 24
REFRESH_SECONDS = 30


@dataclass(frozen=True, slots=True)
class WallboardIncident:
    """An open incident as one sentence."""

    number: int
    severity: str
    parts: Sequence[str | datetime]
    is_acknowledged: bool


@dataclass(frozen=True, slots=True)
class WallboardModel:
    """A model by its worst series."""

    name: str
    tone: Tone
    state: str
    since: datetime | None


@never_cache
@require_safe
def wallboard(request: HttpRequest, token: str) -> HttpResponse:
    """Show the wallboard of a signed address; a forged or revoked one is not found."""
    board = find_wallboard(token)
    is_part = "HX-Request" in request.headers
    if board is None:
        if is_part:
            return HttpResponseClientRefresh()
        raise Http404
    now, project_id = clock.now(), board.project_id
    with limited_statements(STATEMENT_SECONDS):
        incidents = list(
            Incident.objects.filter(project=project_id, cleared_at=None).order_by("-fired_at")
        )
        statuses = read_statuses(project_id, Selection(), now)
    models = models_of(statuses.series.values())
    context = {
        "project": board.project,
        "is_part": is_part,
        "incidents": [_incident(row) for row in incidents[:MOST_INCIDENTS]],
        "incidents_open": len(incidents),
        "incidents_left_out": max(len(incidents) - MOST_INCIDENTS, 0),
        "models": models[:MOST_MODELS],
        "models_left_out": max(len(models) - MOST_MODELS, 0),
        "at": statuses.at,
        "refresh_seconds": REFRESH_SECONDS,
    }
    return render(request, "console/wallboard.html", context)


def models_of(statuses: Iterable[SeriesStatus]) -> list[WallboardModel]:
    """Return the models that have data, worst first: each as its worst series stands."""
    worst: dict[str, SeriesStatus] = {}
    for status in sorted(statuses, key=lambda one: one.rank):
        if status.state is not SeriesState.NO_DATA:
            worst.setdefault(name_of(status.key.provider, status.key.model), status)
    return [
        WallboardModel(name, SERIES_TONES[one.state], state_words(one.state), one.since)
        for name, one in worst.items()
    ]


def _incident(row: Incident) -> WallboardIncident:
    sentence = sentence_of(row.latest_verdict)
    parts = sentence.parts if sentence else [row.title.rstrip(".")]
    return WallboardIncident(row.pk, row.severity, parts, row.acknowledged_at is not None)

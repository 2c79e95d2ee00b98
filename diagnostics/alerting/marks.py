"""Marks on every axis of time: deploys of each kind, and incidents."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from urllib.parse import urlencode

from django.urls import reverse

from diagnostics.alerting.incident_models import Incident
from diagnostics.alerting.incident_records import is_kept
from diagnostics.ingest.deploys import deploys_of
from diagnostics.ingest.models import Deploy
from diagnostics.selection.query_language import Term
from diagnostics.selection.selection import keeps_all
from diagnostics.web.charts.marks import Mark

DEPLOY_FIELDS = ("source", "environment", "provider", "model")
VERSION_OF_KIND = {"prompt": "prompt_version", "release": "release"}
MOST_MARKS = 60


def marks_between(
    project_id: int, since: datetime, until: datetime, terms: Sequence[Term] = ()
) -> list[Mark]:
    """Return the marks with since <= at < until, oldest first, at most the latest 60.

    A deploy of another source or environment than the terms keep is left out, and what was
    observed of another model; what does not say where it belongs counts everywhere.
    """
    marks = [
        *deploy_marks(deploys_of(project_id, since, until)[:MOST_MARKS], terms),
        *_incidents(project_id, since, until, terms),
    ]
    return sorted(marks, key=lambda mark: mark.at)[-MOST_MARKS:]


def deploy_marks(deploys: Iterable[Deploy], terms: Sequence[Term] = ()) -> list[Mark]:
    """Return the marks of the deploys that these terms keep, oldest first."""
    kept = (deploy for deploy in deploys if _is_kept(deploy, terms))
    marks = (Mark(deploy.at, deploy.kind, _label(deploy), _address(deploy)) for deploy in kept)
    return sorted(marks, key=lambda mark: mark.at)


def _incidents(
    project_id: int, since: datetime, until: datetime, terms: Sequence[Term]
) -> Iterator[Mark]:
    incidents = Incident.objects.filter(project_id=project_id, onset__gte=since, onset__lt=until)
    rows = incidents.order_by("-onset").prefetch_related("slices")
    for incident in rows[:MOST_MARKS]:
        if is_kept(incident, terms):
            url = reverse("incident", args=[incident.pk])
            yield Mark(incident.onset, "incident", incident.title, url)


def _is_kept(deploy: Deploy, terms: Sequence[Term]) -> bool:
    known = {name: getattr(deploy, name) for name in DEPLOY_FIELDS}
    return keeps_all(terms, {name: value for name, value in known.items() if value is not None})


def _label(deploy: Deploy) -> str:
    if deploy.previous is not None:
        return f"{deploy.model}: {deploy.previous} → {deploy.version}"
    return f"{deploy.version} ({deploy.source})" if deploy.source else deploy.version


def _address(deploy: Deploy) -> str | None:
    field = VERSION_OF_KIND.get(deploy.kind)
    return field and f"{reverse('now')}?{urlencode({field: deploy.version})}"

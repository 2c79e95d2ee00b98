"""Deploys, reported by agents and pipelines or observed; marks on every time axis."""

from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from diagnostics.ingest.deploy_items import DeployKind, ObservedKind, PostedDeploy
from diagnostics.ingest.models import Deploy
from diagnostics.redaction.rules import redactor_of
from diagnostics.selection.fields import LONGEST_VALUE
from failsoft.json_values import clean_text

NOTE_BYTES = 2_000


def record_deploy(project_id: int, posted: PostedDeploy) -> tuple[Deploy, bool]:
    """Store a deploy, redacted; return the row and whether it is new."""
    redact = redactor_of(project_id)
    names = posted.model_dump(include={"source", "environment", "version"})
    identity: dict[str, Any] = {
        "project_id": project_id,
        "at": posted.at,
        "kind": posted.kind.value,
        **{
            name: text and redact(clean_text(text), LONGEST_VALUE, is_name=True).text
            for name, text in names.items()
        },
    }
    note = redact(clean_text(posted.note), NOTE_BYTES).text
    return Deploy.objects.get_or_create(**identity, defaults={"note": note})


def deploys_of(
    project_id: int, since: datetime | None = None, until: datetime | None = None
) -> QuerySet[Deploy]:
    """Return reported and observed deploys with since <= at < until, newest first."""
    deploys = Deploy.objects.filter(project_id=project_id)
    if since:
        deploys = deploys.filter(at__gte=since)
    if until:
        deploys = deploys.filter(at__lt=until)
    return deploys.order_by("-at", "-id")


def reported_deploys(
    project_id: int, since: datetime | None = None, until: datetime | None = None
) -> QuerySet[Deploy]:
    """Return the reported deploys of a project, newest first."""
    return deploys_of(project_id, since, until).filter(kind__in=DeployKind)


def observed_changes(project_id: int, since: datetime, until: datetime) -> QuerySet[Deploy]:
    """Return the observed changes of answerers, newest first."""
    return deploys_of(project_id, since, until).filter(kind__in=ObservedKind)

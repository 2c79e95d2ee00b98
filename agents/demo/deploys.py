"""What was changed when in the demo, as deploys that are marks on every axis of time."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from agents.demo.drawn_runs import DrawnIncident
from agents.demo.fleet import DAYS, DEPLOYED_HOURS_AGO, PROMPTS, SOURCES, release_at
from diagnostics.ingest.deploy_items import DeployKind, PostedDeploy

NOTE = "Demo data."
"""How every note of the demo begins: removal looks for it."""


def story_deploys(now: datetime) -> Iterator[PostedDeploy]:
    """Tell the releases and prompt versions of the fortnight before `now`."""
    for hours in DEPLOYED_HOURS_AGO:
        if hours < DAYS * 24:
            at = now - timedelta(hours=hours)
            version = release_at(now, timedelta(hours=hours))
            for source in SOURCES:
                yield _deploy(at, "release", version, source)
    for (source, environment), periods in PROMPTS.items():
        for period in periods:
            if period.since_hours < DAYS * 24:
                at = now - timedelta(hours=period.since_hours)
                yield _deploy(at, "prompt", period.name, source, environment)


def incident_deploys(incident: DrawnIncident) -> Iterator[PostedDeploy]:
    """Tell the changes of an incident that lie before its end."""
    for at, change in incident.changes:
        if at < incident.now:
            yield _deploy(at, change.kind, change.version, change.source)


def _deploy(
    at: datetime,
    kind: str,
    version: str,
    source: str | None,
    environment: str | None = None,
) -> PostedDeploy:
    return PostedDeploy(
        at=at,
        kind=DeployKind(kind),
        source=source,
        environment=environment,
        version=version,
        note=NOTE,
    )

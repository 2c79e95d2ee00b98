"""Deploys of the demo."""

from collections.abc import Iterator
from datetime import datetime

from agents.demo.story import HOUR, STORY, release_at
from diagnostics.ingest.deploy_items import DeployKind, PostedDeploy

NOTE = "Demo data."
"""The prefix of every note of the demo, by which it is removed."""


def story_deploys(now: datetime) -> Iterator[PostedDeploy]:
    """Yield the releases and prompt versions of the two weeks before `now`."""
    for hours in STORY.deployed_hours_ago:
        if hours < STORY.days * 24:
            for source in STORY.sources:
                version = release_at(now, hours * HOUR)
                yield demo_deploy(now - hours * HOUR, "release", version, source)
    for period in STORY.prompts:
        if period.since_hours < STORY.days * 24:
            at, scope = now - period.since_hours * HOUR, (period.source, period.environment)
            yield demo_deploy(at, "prompt", period.name, *scope)


def demo_deploy(
    at: datetime, kind: str, version: str, source: str | None, environment: str | None = None
) -> PostedDeploy:
    """Return a deploy with the demo's note."""
    return PostedDeploy(
        at=at,
        kind=DeployKind(kind),
        source=source,
        environment=environment,
        version=version,
        note=NOTE,
    )

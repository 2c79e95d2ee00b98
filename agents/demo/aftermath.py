"""Demo data other than calls: breakers, fix patterns, resolutions of incidents."""

from datetime import datetime, timedelta

from agents.breakers.models import Breaker, BreakerTransition
from agents.demo.story import HOUR, STORY, DemoBreaker
from agents.fix_patterns.models import FixPattern
from agents.fix_patterns.status import DEMO
from diagnostics.alerting.incident_models import Incident, IncidentNote
from failsoft.retry.answers import PlannerSchema
from failsoft.retry.breaker import BreakerState

NOTICED = timedelta(minutes=9)
COOL_DOWN = timedelta(seconds=80)


def demo_provider(name: str) -> str:
    """Return the name of a demo provider, which never clashes with a real one."""
    return f"{name} (demo)"


def add_aftermath(project_id: int, moment: datetime) -> None:
    """Write it for a story that ends at `moment`; it never affects a real call."""
    # Their history is read in the order in which it was written.
    for breaker in sorted(STORY.breakers, key=lambda breaker: -breaker.moves[0].hours_ago):
        _add_breaker(project_id, breaker, moment)
    _add_patterns(project_id, moment)
    for incident in STORY.incidents:
        if incident.resolved_as:
            resolved = Incident.objects.filter(
                project_id=project_id,
                is_backfilled=True,
                state=Incident.State.RESOLVED,
                slices__slice__model=incident.model,
            )
            for row in resolved.distinct():
                row.acknowledged_at = row.fired_at + NOTICED
                row.resolution_cause = incident.resolved_as
                row.save(update_fields=["acknowledged_at", "resolution_cause"])
                at = row.cleared_at or row.acknowledged_at
                IncidentNote.objects.create(incident=row, at=at, text=incident.note)


def remove_aftermath(project_id: int) -> None:
    """Delete breakers and fix patterns of the demo; incidents are removed elsewhere."""
    names = {demo_provider(series.provider) for series in STORY.series}
    Breaker.objects.filter(project_id=project_id, provider__in=names).delete()
    FixPattern.objects.filter(project_id=project_id, decided_by=DEMO).delete()


def _add_breaker(project_id: int, breaker: DemoBreaker, moment: datetime) -> None:
    last = breaker.moves[-1]
    changed_at = moment - last.hours_ago * HOUR
    row = Breaker.objects.create(
        project_id=project_id,
        provider=demo_provider(breaker.provider),
        model=breaker.model,
        operation=breaker.node,
        kind=breaker.kind,
        state=last.state,
        cause=last.cause,
        epoch=len(breaker.moves),
        trips=sum(move.state == BreakerState.OPEN for move in breaker.moves),
        open_until=changed_at + COOL_DOWN if last.state == BreakerState.OPEN else None,
    )
    Breaker.objects.filter(pk=row.pk).update(changed_at=changed_at)
    states = [BreakerState.CLOSED, *(move.state for move in breaker.moves)]
    BreakerTransition.objects.bulk_create(
        BreakerTransition(
            breaker=row,
            from_state=before,
            to_state=move.state,
            at=moment - move.hours_ago * HOUR,
            cause=move.cause,
            epoch=epoch,
        )
        for epoch, (before, move) in enumerate(zip(states, breaker.moves, strict=False), start=1)
    )


def _add_patterns(project_id: int, moment: datetime) -> None:
    FixPattern.objects.bulk_create(
        (
            FixPattern(
                project_id=project_id,
                schema=PlannerSchema.PLAN,
                last_success_at=moment - HOUR,
                decision=FixPattern.Decision.APPROVED,
                decided_by=DEMO,
                decided_at=moment - STORY.days * 24 * HOUR,
                told_good=pattern.told[0],
                told_runs=pattern.told[1],
                withheld_good=pattern.withheld[0],
                withheld_runs=pattern.withheld[1],
                **pattern.model_dump(exclude={"told", "withheld"}),
            )
            for pattern in STORY.fix_patterns
        ),
        ignore_conflicts=True,
    )

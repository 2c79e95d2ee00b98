"""Who watches the watchers: is the evaluator alive, do notifications get out (a dead man's switch).

Three ways that need nothing of each other: a banner on every page, an address outside that
is asked after each evaluation, and `manage.py check_alerter` from anywhere.
"""

import time
from dataclasses import dataclass
from datetime import datetime, timedelta

import structlog
from django.conf import settings
from django.db.models import QuerySet

from diagnostics import clock
from diagnostics.alerting.notification_models import Channel, Notification
from diagnostics.figures import duration, plural
from diagnostics.outbound.addresses import ForbiddenAddressError
from diagnostics.outbound.pinned_http import MAX_SECONDS, PinnedHttpError, send_request
from diagnostics.store.models import EVALUATOR, Heartbeat
from diagnostics.store.sql import fetch, statement

logger = structlog.get_logger(__name__)

MISSED = timedelta(minutes=3)
"""Three minutes that nobody has looked at."""
BEGINNING = timedelta(minutes=10)
"""So long a new project waits for its first evaluation."""
OVERDUE = timedelta(minutes=10)
A_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Alarm:
    """What every page of a project has to say; nothing when all is well."""

    silent_for: timedelta | None
    # When all was last judged in time, and what was not in the latest turn of the project.
    judged_at: datetime | None
    passed_over: str
    given_up: int
    # Waiting for a sender that does not come, though their channels work.
    overdue: int = 0
    # Waiting for a channel that fails.
    held_up: int = 0
    # Report mails of the last day.
    lost_reports: int = 0
    # Not an alarm of its own: the title and the icon of every page show it.
    open_incidents: int = 0

    @property
    def is_raised(self) -> bool:
        lost = self.given_up + self.overdue + self.held_up + self.lost_reports
        return self.silent_for is not None or lost > 0 or bool(self.passed_over)


def alarm_of(project_id: int) -> Alarm:
    """Read in one statement whether anybody evaluates, and what was given up unseen."""
    parameters = {"project": project_id, "heartbeat": EVALUATOR, "overdue": OVERDUE, "a_day": A_DAY}
    row = fetch(statement("alarm"), parameters)[0]
    now, seen_at, created_at, judged_at, left_out, *counted = row
    is_missed = judged_at is None or now - judged_at > MISSED
    passed_over = (is_missed and left_out) or ""
    silent_for = None
    if seen_at is not None and now - seen_at > MISSED:
        silent_for = now - seen_at
    elif seen_at is None and created_at is not None and now - created_at >= BEGINNING:
        silent_for = now - created_at
    return Alarm(silent_for, judged_at, passed_over, *counted)


def ping_outside() -> bool:
    """Tell the address outside that an evaluation ran; False when nobody answered."""
    url = settings.FAILSOFT_PING_URL
    if not url:
        return False
    try:
        # It is the installation's own setting: it may be a private address.
        answer = send_request(url, time.monotonic() + MAX_SECONDS, allow_private=True)
    except (ForbiddenAddressError, PinnedHttpError) as error:
        logger.warning("ping_failed", reason=str(error))
        return False
    if answer.status >= 400:
        logger.warning("ping_failed", reason=f"the server answered {answer.status}")
    return answer.status < 400


def find_faults() -> list[str]:
    """Say what is wrong with alerting, everywhere; nothing when it works."""
    now = clock.now()
    last = Heartbeat.objects.filter(name=EVALUATOR).values_list("at", flat=True).first()
    faults = []
    if last is None:
        faults.append("no alert rule has ever been evaluated")
    elif now - last > MISSED:
        faults.append(f"alert rules have not been evaluated for {duration(now - last)}")
    if waiting := _waiting(now).count():
        faults.append(f"{plural(waiting, 'notification')}: waits to be sent for too long")
    given_up = Notification.objects.filter(state=Notification.State.FAILED, seen_at=None)
    if lost := given_up.count():
        faults.append(f"{plural(lost, 'notification')}: was given up unseen")
    failing = Channel.objects.filter(enabled=True, failing_since__lt=now - OVERDUE)
    faults += [
        f"channel {row.name!r} has failed for {duration(now - row.failing_since)}: {row.last_error}"
        for row in failing
        if row.failing_since
    ]
    return faults


def overdue_notifications(now: datetime) -> QuerySet[Notification]:
    """Return those that no sender has come for, though their channels work."""
    return _waiting(now).filter(channel__failing_since=None)


def _waiting(now: datetime) -> QuerySet[Notification]:
    return Notification.objects.filter(
        state=Notification.State.QUEUED, next_attempt_at__lt=now - OVERDUE, channel__enabled=True
    )

"""Redaction rules of projects, cached for seconds per process, applied after the built-in ones.

Requests and tasks name the project that they work for by `texts_of`: from then on every text
they redact is masked by its rules too.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from threading import Lock
from time import monotonic

import structlog
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from diagnostics.constraints import NamedRow, check, index, known, person, unique
from diagnostics.redaction.fields import RedactedCharField
from diagnostics.redaction.redactor import find_own_rules, redact_found
from failsoft.redaction import Redact
from failsoft.redaction.re2_search import BadPatternError, OwnRule, OwnRules


class RedactionRule(NamedRow):
    """A pattern under RE2 that is masked as `[REDACTED:kind]` in one project."""

    project = models.ForeignKey(
        "diagnostics.Project", models.CASCADE, related_name="redaction_rules", db_index=False
    )
    name = RedactedCharField(max_length=80)
    pattern = models.CharField(max_length=500)
    kind = models.CharField(max_length=40)
    enabled = models.BooleanField(default=True)
    created_by = person(blank=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        constraints = [
            # Read by every process that records events of the project.
            unique("diagnostics_redactionrule_named_once", "project name"),
            check(
                "diagnostics_redactionrule_kind_fits_marker", Q(kind__regex=r"^[a-z0-9_-]{1,40}$")
            ),
        ]


class Rescrub(NamedRow):
    """A run that redacts stored data again, with its progress.

    `stage` counts finished sources, `cursor` is the last key in the current one; both change
    in the transaction that changes the rows.
    """

    named = "{0.project_id} {0.status}"

    class Status(models.TextChoices):
        RUNNING = "running"
        DONE = "done"
        FAILED = "failed"

    project = models.ForeignKey(
        "diagnostics.Project", models.CASCADE, related_name="rescrubs", db_index=False
    )
    status = models.CharField(
        max_length=16, choices=Status, default=Status.RUNNING, db_default="running"
    )
    stage = models.PositiveIntegerField(default=0)
    cursor = models.JSONField(default=list)
    seen_rows = models.BigIntegerField(default=0)
    changed_rows = models.BigIntegerField(default=0)
    starts = models.PositiveIntegerField(default=0)
    requested_by = person(blank=False)
    requested_at = models.DateTimeField(db_default=Now(), editable=False)
    moved_at = models.DateTimeField(db_default=Now())
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            known("diagnostics_rescrub_status_known", "status", "running done failed"),
            # One at a time: a second one would start from the beginning.
            unique("diagnostics_rescrub_one_at_a_time", "project", Q(status="running")),
        ]
        indexes = [
            # Read by the settings page, newest first.
            index("diagnostics_rescrub_recent", "project -requested_at")
        ]


logger = structlog.get_logger(__name__)
# A new rule applies in every process after this time.
KEPT_SECONDS = 3.0
_lock = Lock()
_kept: dict[int, tuple[float, OwnRules | None]] = {}


def redactor_of(project_id: int) -> Redact:
    """Return the function that redacts texts of a project, including its own rules."""
    own = own_rules_of(project_id)
    return redact_found if own is None else partial(redact_found, own=own)


@contextmanager
def texts_of(project_id: int | None) -> Iterator[None]:
    """Mask every text by the rules of a project too, in this thread and those of its runs."""
    before = find_own_rules.set(None)
    try:
        work_for(project_id)
        yield
    finally:
        find_own_rules.reset(before)


def work_for(project_id: int | None) -> None:
    find_own_rules.set(None if project_id is None else partial(own_rules_of, project_id))


def own_rules_of(project_id: int) -> OwnRules | None:
    """Return the compiled rules of a project that are switched on; None without any."""
    until, own = _kept.get(project_id, (0.0, None))
    if monotonic() >= until:
        own = _load(project_id)
        with _lock:
            _kept[project_id] = (monotonic() + KEPT_SECONDS, own)
    return own


def forget_rules() -> None:
    """Drop the cached rules of this process, which have changed."""
    with _lock:
        _kept.clear()


def _load(project_id: int) -> OwnRules | None:
    rows = RedactionRule.objects.filter(project_id=project_id, enabled=True)
    patterns = list(rows.order_by("pk").values_list("kind", "pattern"))
    rules: list[OwnRule] = []
    for rule in (OwnRule(kind, pattern) for kind, pattern in patterns):
        try:
            OwnRules([rule])
            rules.append(rule)
        except BadPatternError as error:
            # It compiled when it was saved, but RE2 versions differ.
            logger.exception("redaction_rule_refused", kind=rule.kind, reason=str(error))
    return OwnRules(rules) if patterns else None

"""Runs of plans, their steps, and the working store."""

import json
from typing import Any, Protocol

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.functional import cached_property
from psycopg.types.json import Json

from diagnostics.accounts.models import Project
from diagnostics.constraints import NamedRow, check, choices_of, index, known, unique
from diagnostics.store.leases import UNFINISHED, LeasedRow
from failsoft.plans import contract


class ExactJSONField(models.JSONField):
    """JSON stored verbatim, including the order of keys and the form of numbers."""

    def db_type(self, connection: BaseDatabaseWrapper) -> str:
        """Return PostgreSQL's type that keeps the text."""
        return "json"

    def get_db_prep_value(
        self,
        value: Any,  # noqa: ANN401 - any JSON
        connection: BaseDatabaseWrapper,
        prepared: bool = False,
    ) -> Any:  # noqa: ANN401 - as Django has it
        if value is None or hasattr(value, "as_sql"):
            return value
        return Json(value, dumps=lambda data: json.dumps(data, ensure_ascii=False))

    def from_db_value(
        self,
        value: Any,  # noqa: ANN401 - any JSON
        expression: object,
        connection: BaseDatabaseWrapper,
    ) -> Any:  # noqa: ANN401 - any JSON
        """Return the value, which the driver has read already."""
        return value


class Run(LeasedRow):
    """A validated payload on its way through a runner.

    The payload of the row is redacted, for display. The raw payload that is executed is in
    the working store, under the owner `run:<id>`.
    """

    class State(models.TextChoices):
        """The progress of the run; its outcome is `task_status`."""

        QUEUED = "queued"
        RUNNING = "running"
        ENDED = "ended"
        # Started three times and never ended: it kills its workers.
        POISON = "poison"

    class Runner(models.TextChoices):
        # One task for the run, threads for its ready steps.
        INLINE = "inline"
        # A message for each ready step, executed by any worker.
        DISTRIBUTED = "distributed"

    TaskStatus = contract.TaskStatus

    id = models.UUIDField(primary_key=True, editable=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="+")
    correlation_id = models.CharField(max_length=200)
    cycle = models.PositiveIntegerField(default=1)
    payload = models.JSONField()
    # What the run was submitted with; a worker with another version refuses it.
    contract_version = models.CharField(max_length=32)
    release = models.CharField(max_length=64, blank=True, default="")
    # The digest of each registered tool that the plan calls, by name.
    tool_digests = models.JSONField(default=dict, blank=True)
    runner = models.CharField(max_length=16, choices=Runner, default=Runner.INLINE)
    state = models.CharField(max_length=16, choices=State, default=State.QUEUED)
    task_status = models.CharField(
        max_length=16, choices=choices_of(TaskStatus), null=True, blank=True
    )
    meta = models.JSONField(null=True, blank=True)
    # Violations reported by the results validator; empty for valid results.
    contract_violations = models.JSONField(default=list, blank=True)
    # The task to enqueue through the outbox when the run ends.
    on_end_task = models.CharField(max_length=200, blank=True, default="")
    on_end_kwargs = models.JSONField(default=dict, blank=True)
    # Why workers refuse the run, and how many times they did.
    refused_reason = models.TextField(blank=True, default="")
    refusals = models.PositiveIntegerField(default=0)
    first_refused_at = models.DateTimeField(null=True, blank=True)
    # Distributed runs only: steps that are not final; the rows are checked at 0.
    open_steps = models.PositiveIntegerField(default=0)
    # Whether steps that depend on a degraded output are skipped.
    strict_degraded = models.BooleanField(default=False)
    # The run that this one repeats, the position it starts from, and who requested it.
    rerun_of = models.ForeignKey(
        "self", models.SET_NULL, related_name="reruns", null=True, blank=True
    )
    rerun_from = models.PositiveIntegerField(null=True, blank=True)
    requested_by = models.CharField(max_length=200, blank=True, default="")
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    deadline_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes = [
            # Read by the goal timeline and by search for a correlation id.
            index("plans_run_of_goal", "project correlation_id cycle"),
            # Read by the reconciler.
            index("plans_run_unfinished", "lease_until", Q(state__in=[*UNFINISHED])),
        ]
        constraints = [
            known("plans_run_state_known", "state", "queued running ended poison"),
            known("plans_run_runner_known", "runner", "inline distributed"),
            known("plans_run_task_status_known", "task_status", contract.TaskStatus, or_null=True),
            check(
                "plans_run_ended_has_task_status",
                Q(state="ended", task_status__isnull=False) | ~Q(state="ended"),
            ),
        ]

    def __str__(self) -> str:
        return f"run {self.pk}"

    @cached_property
    def id_text(self) -> str:
        """The id as text, converted once for all steps."""
        return str(self.id)


class RunStep(LeasedRow):
    """One step of a run."""

    class State(models.TextChoices):
        """The progress of the step; a final step is never executed again."""

        PENDING = "pending"
        STARTED = "started"
        FINAL = "final"

    class Resolution(models.TextChoices):
        """The decision of a person about a step whose outcome is unknown."""

        DONE = "done"
        NOT_DONE = "not_done"
        RESUME = "resume"

    project = models.ForeignKey(Project, models.CASCADE, related_name="+")
    # Looked up by the unique (run, position). A separate index would make the query planner
    # scan all steps of the run for each step.
    run = models.ForeignKey(Run, models.CASCADE, related_name="steps", db_index=False)
    position = models.PositiveIntegerField()
    step_id = models.TextField()
    title = models.TextField(blank=True, default="")
    tool = models.TextField(null=True, blank=True)
    dependencies = ArrayField(models.TextField(), default=list, blank=True)
    state = models.CharField(max_length=16, choices=State, default=State.PENDING)
    ok = models.BooleanField(null=True, blank=True)
    skipped = models.BooleanField(null=True, blank=True)
    reason = models.TextField(null=True, blank=True)
    error = models.TextField(null=True, blank=True)
    output = ExactJSONField(null=True, blank=True)
    # The last part of the idempotency key `run:step:group`.
    call_group = models.PositiveIntegerField(default=1)
    # Distributed runs only: the number of dependencies that are not final yet, and the
    # step that caused this one not to be ok.
    waits_for = models.PositiveIntegerField(default=0)
    root_position = models.PositiveIntegerField(null=True, blank=True)
    # A person's decision about a call whose outcome is unknown.
    resolution = models.CharField(max_length=16, choices=Resolution, blank=True, default="")
    resolved_by = models.CharField(max_length=200, blank=True, default="")
    resolved_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["run", "position"]
        indexes = [
            # Read by the reconciler of distributed steps.
            index("plans_run_step_leased", "lease_until", Q(lease_until__isnull=False))
        ]
        constraints = [
            unique("plans_run_step_position_once", "run position"),
            check(
                "plans_run_step_resolution_known",
                Q(resolution__in=["", "done", "not_done", "resume"]),
            ),
            known("plans_run_step_state_known", "state", "pending started final"),
            check(
                "plans_run_step_final_is_decided",
                ~Q(state="final") | Q(ok__isnull=False, skipped__isnull=False),
            ),
            check("plans_run_step_skipped_is_not_ok", ~Q(skipped=True, ok=True)),
            check("plans_run_step_ok_has_no_error", ~Q(ok=True, error__isnull=False)),
        ]

    def __str__(self) -> str:
        return f"{self.step_id} of {self.run_id}"


class Owner(Protocol):
    """A row that has values in the working store until it ends: a goal or a run."""

    pk: Any
    project_id: int


def owner_of(row: Owner) -> str:
    """Return the owner name of a row in the working store: `goal:<uuid>` or `run:<uuid>`."""
    return f"{type(row).__name__.lower()}:{row.pk}"


class WorkingItem(NamedRow):
    """An encrypted value of an owner such as `goal:<id>` or `run:<id>`."""

    named = "{0.owner} {0.name}"
    project = models.ForeignKey(Project, models.CASCADE, related_name="+")
    owner = models.CharField(max_length=80)
    name = models.CharField(max_length=200)
    ciphertext = models.BinaryField()
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    # Null until the owner ends.
    expires_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [unique("plans_working_item_named_once", "project owner name")]
        indexes = [
            # Read by the purge of what has expired.
            index("plans_working_item_expiry", "expires_at", Q(expires_at__isnull=False))
        ]

"""The ingestion page: sources, rejects and the state of the pipeline; the page of deploys."""

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, NamedTuple
from uuid import uuid4

from django import forms
from django.contrib import messages
from django.db import transaction
from django.db.models import Count, Min
from django.http import HttpResponse
from django.shortcuts import redirect
from pydantic import ValidationError

from diagnostics import clock
from diagnostics.accounts.audit_log import note
from diagnostics.accounts.models import ApiKey
from diagnostics.accounts.projects import place_of_key
from diagnostics.figures import Tone
from diagnostics.ingest.agent_schemas import current_schemas
from diagnostics.ingest.deploy_items import DeployKind, PostedDeploy
from diagnostics.ingest.deploys import record_deploy
from diagnostics.ingest.item_warnings import UncheckedAnswers, rows_of
from diagnostics.ingest.key_counts import ItemCounts, tallies_of
from diagnostics.ingest.models import Reject, Usage, reported_deploys
from diagnostics.ingest.recording import record
from diagnostics.ingest.rejects import rejects_of
from diagnostics.ingest.sources import Sender, key_state, lag_seconds, sources_of
from diagnostics.queries.sums import Question, sum_rollups
from diagnostics.store.models import Heartbeat
from diagnostics.store.outbox import waiting
from diagnostics.store.rollups import UNCHECKED
from diagnostics.store.sql import fetch, statement
from diagnostics.store.windows import align
from diagnostics.web.edit_forms import LocalTimeField, OwnZoneField, read_local_time
from diagnostics.web.pages import (
    ConsoleRequest,
    may_act,
    member_action,
    member_form,
    member_page,
    require_actor,
    respond,
)
from failsoft.events import EventKind, PostedEvent, UncheckedReason, event_name
from failsoft.identifiers import uuid7

# A terminal treats a carriage return as the end of a line and obeys escapes.
ENDS_OF_LINES = re.compile(r"\r\n?|[\x0b\x0c\x85\u2028\u2029]")
CONTROLS = re.compile(r"[\x00-\x08\x0e-\x1f\x7f-\x9f]")
WORD = "END"
# Rows of each table.
SHOWN = 50


class Heredoc(NamedTuple):
    """The text between `<<'end'` and `end`."""

    text: str
    end: str


def as_heredoc(text: str) -> Heredoc:
    """Return the text without control characters, and an end that is none of its lines."""
    text = CONTROLS.sub("\ufffd", ENDS_OF_LINES.sub("\n", text))
    lines = set(text.split("\n"))
    number, end = 0, WORD
    while end in lines:
        number += 1
        end = f"{WORD}_{number}"
    return Heredoc(text, end)


# Beat writes both heartbeats every five seconds.
STALE = timedelta(seconds=30)
OLD_QUEUE = timedelta(seconds=60)
DAY = timedelta(days=1)
TEST_NODE = "test"
TEST_SOURCE = "console"
TEST_RUN = "test-"
"""The beginning of the run ids of test events."""


PipelinePart = tuple[str, Tone, str]
"""A part of the pipeline without a page of its own, and its state."""
Row = Mapping[str, Any]


@member_page
def ingest(request: ConsoleRequest) -> HttpResponse:
    now, project_id = clock.now(), request.project.pk
    sources, keys = _source_rows(project_id, now), _key_rows(project_id, now)
    rejects, today = rejects_of(project_id), {"project_id": project_id, "day": now.date()}
    context: Mapping[str, Any] = {
        "unchecked": unchecked_of(project_id, now)[:SHOWN],
        "not_understood": sum(row["day"].not_understood for row in keys),
        "repeated": repeated_attempts(project_id, now),
        "unique": unique_values(project_id, now),
        "ahead": sum(row["day"].ahead for row in keys),
        "late": sum(row["day"].late for row in keys),
        "sources": sources[:SHOWN],
        "sources_left_out": max(len(sources) - SHOWN, 0),
        "keys": keys[:SHOWN],
        "parts": [*_heartbeats(now), _queue(now)],
        "lag": lag_seconds(project_id),
        "usage": Usage.objects.filter(**today).first() or Usage(**today),
        "rejects": [_reject_row(reject) for reject in rejects.select_related("api_key")[:SHOWN]],
        "rejects_total": rejects.count(),
        "schemas": current_schemas(project_id)[:SHOWN],
        "shown_key": place_of_key(request.project),
        "section": "ingest",
        "tab": "ingest",
    }
    return respond(request, "ingest/ingest", context, "Data ingestion")


@member_action
def send_test_event(request: ConsoleRequest) -> HttpResponse:
    """Store one good attempt of a node called test, as an agent would send it."""
    require_actor(request)
    at, reference = clock.now(), f"{TEST_RUN}{uuid4().hex[:12]}"
    event = PostedEvent(
        event_id=uuid7(at, uuid4().bytes),
        name=event_name(TEST_NODE, EventKind.SUCCEEDED),
        occurred_at=at,
        correlation_id=reference,
        cycle=1,
        attempt=1,
        provider="console",
        model="test",
        environment=TEST_NODE,
        source=TEST_SOURCE,
    )
    (stored,) = record(request.project.pk, [event])
    message = f"Test event {stored.status.value}: {reference}"
    messages.success(request, message)
    return redirect("ingest")


def unchecked_of(project_id: int, now: datetime) -> list[UncheckedAnswers]:
    """Return the unchecked answers of the last 24 hours, the largest count first."""
    question = Question(align(now - DAY, now, now), ("node",), UNCHECKED)
    counts = {
        (node, reason): count
        for node, *numbers in sum_rollups(project_id, question)
        for reason, count in zip(UncheckedReason, numbers, strict=True)
        if count
    }
    return rows_of(counts)


def repeated_attempts(project_id: int, now: datetime) -> int:
    """Return how many of the latest calls repeat the attempt number of a bad answer before."""
    parameters = {"project": project_id, "since": now - DAY}
    ((count,),) = fetch(statement("repeated_attempts"), parameters)
    return int(count)


def unique_values(project_id: int, now: datetime) -> list[tuple[str, int, int]]:
    """Return the fields with a different value in nearly every call: name, values, calls."""
    return list(fetch(statement("unique_values"), {"project": project_id, "since": now - DAY}))


def _heartbeats(now: datetime) -> list[PipelinePart]:
    times = {beat.name: beat.at for beat in Heartbeat.objects.all()}
    parts: list[PipelinePart] = []
    for name, label in (("worker", "Worker"), ("beat", "Scheduler")):
        if name not in times:
            parts.append((label, "bad", "never seen"))
        elif now - times[name] > STALE:
            silence = (now - times[name]).total_seconds()
            parts.append((label, "bad", f"silent for {silence:.0f} s"))
        else:
            parts.append((label, "good", "running"))
    return parts


def _queue(now: datetime) -> PipelinePart:
    oldest = waiting().aggregate(oldest=Min("available_at"))["oldest"]
    if oldest is None:
        return "Queue", "good", "empty"
    age = max((now - oldest).total_seconds(), 0)
    is_old = now - oldest > OLD_QUEUE
    return "Queue", "bad" if is_old else "good", f"oldest waiting {age:.0f} s"


def _source_rows(project_id: int, now: datetime) -> list[tuple[str, Sender | None, ItemCounts]]:
    """Return the sources of the week, those with only refused items today first.

    Without a sender nothing of a source was stored.
    """
    tallies = tallies_of(project_id, "source", now - DAY)
    stored = [
        (source.name or "", source, tallies.pop(source.name or "", ItemCounts()))
        for source in sources_of(project_id, now)
    ]
    refused = [
        (str(name), None, day)
        for name, day in sorted(tallies.items(), key=lambda entry: str(entry[0]))
        if day.invalid or day.rejected
    ]
    return [*refused, *stored]


def _reject_row(reject: Reject) -> Row:
    """Return a reject with its body if that can be sent again: not compressed, not binary."""
    is_item = reject.item_index is not None
    head = reject.head
    is_text = bool(head) and "\ufffd" not in head and reject.code != "otlp_item"
    is_ours = is_item or reject.endpoint.startswith("/api/v1/")
    return {
        "reject": reject,
        "again": as_heredoc(head) if is_text and is_ours else None,
        "kind": "application/x-ndjson" if is_item else "application/json",
        "is_whole": len(head.encode("utf-8", "replace")) >= reject.size_bytes,
    }


def _key_rows(project_id: int, now: datetime) -> list[Row]:
    rejects = Reject.objects.filter(project_id=project_id).values_list("api_key")
    counts = dict(rejects.annotate(rejects=Count("pk")).order_by())
    tallies = tallies_of(project_id, "api_key", now - DAY)
    keys = ApiKey.objects.filter(project_id=project_id).order_by("revoked_at", "name")
    return [
        {
            "key": key,
            "state": key_state(key, now),
            "rejects": counts.get(key.pk, 0),
            "day": tallies.get(key.pk, ItemCounts()),
        }
        for key in keys
    ]


class DeployForm(forms.Form):
    kind = forms.ChoiceField(choices=[(kind.value, kind.value.capitalize()) for kind in DeployKind])
    version = forms.CharField(max_length=200, help_text="Release, prompt version or commit.")
    source = forms.CharField(max_length=200, required=False, help_text="The agent or service.")
    environment = forms.CharField(max_length=200, required=False)
    at = LocalTimeField(label="Time")
    tz = OwnZoneField()
    note = forms.CharField(max_length=2000, required=False)

    def clean(self) -> dict[str, Any]:
        """Validate the fields as the API does, by the same model."""
        fields = self.cleaned_data
        try:
            optional = {name: fields.get(name) or None for name in ("source", "environment")}
            self.posted = PostedDeploy(
                at=read_local_time(fields.get("at", ""), fields.get("tz", "")),
                kind=DeployKind(fields.get("kind", "")),
                version=fields.get("version", ""),
                note=fields.get("note", ""),
                **optional,
            )
        except (ValidationError, ValueError):
            if not self.errors:
                self.add_error("at", "Not a valid time.")
        return fields


@member_form
def deploys(request: ConsoleRequest) -> HttpResponse:
    form = DeployForm(request.POST or None, initial={"tz": request.session.get("zone", "")})
    if request.method == "POST":
        require_actor(request)
        if form.is_valid():
            with transaction.atomic():
                row, is_new = record_deploy(request.project.pk, form.posted)
                if is_new:
                    place = {"source": row.source, "environment": row.environment}
                    details = {**place, "at": row.at.isoformat()}
                    note(request.project.pk, request.user, "deploy.marked", str(row), details)
            words = "Deploy marked" if is_new else "This deploy was marked before"
            messages.success(request, f"{words}: {row.kind} {row.version}.")
            return redirect("deploys")
    context = {
        "section": "ingest",
        "tab": "deploys",
        "form": form,
        "rows": reported_deploys(request.project.pk)[:SHOWN],
        "may_act": may_act(request),
    }
    return respond(request, "ingest/deploys", context, "Deploys")

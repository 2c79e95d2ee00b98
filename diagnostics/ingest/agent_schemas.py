"""Schemas that agents register for their nodes: immutable versions, one of them current."""

import json
from collections.abc import Collection
from typing import Any

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from rest_framework import status
from rest_framework.exceptions import APIException

from diagnostics import clock
from diagnostics.accounts.models import Project
from diagnostics.figures import read_number
from diagnostics.ingest.models import AgentSchema
from diagnostics.ingest.schemas import CompiledSchema, SchemaCache, SchemaFaultError, read_schema
from diagnostics.ingest.schemas.assertions import identity
from diagnostics.redaction.redactor import redact_found
from failsoft.json_values import JSON, escape_pointer

MAX_NODES = 200
MAX_VERSIONS = 100
# Registered schemas, and those in requests.
COMPILED = SchemaCache()
SECRET = "holds what looks like a secret; schemas are stored and shown as they are"  # noqa: S105
TAKEN = "this version is known with another schema; a changed schema needs a new version"
FULL = f"a project has schemas of at most {MAX_NODES} nodes"


class SchemaConflictError(APIException):
    """409: the version is taken, or the project has too many nodes."""

    status_code = status.HTTP_409_CONFLICT
    default_code = "conflict"


def register_schema(
    project: Project, node: str, json_schema: JSON, version: str | None
) -> tuple[AgentSchema, CompiledSchema]:
    """Make a schema the current one of its node; repeating it changes nothing.

    Without a version it gets the next number, unless the current schema is the same.
    Raises SchemaFaultError and SchemaConflictError. Of a node's versions the newest 100 are kept.
    """
    schema = read_schema(json_schema)
    _refuse_secrets(json_schema, "")
    for _ in range(2):
        try:
            with transaction.atomic():
                return _store(project, node, json_schema, version), schema
        except IntegrityError:
            # Another request registered the same node at the same moment: read again.
            continue
    raise SchemaConflictError(TAKEN)


def retire_schema(project: Project, node: str) -> bool:
    """Stop checking a node's answers; return False if it had no current schema."""
    current = current_schemas(project.pk).filter(node=node)
    return current.update(current_since=None) == 1


def current_schemas(project_id: int) -> QuerySet[AgentSchema]:
    """Return the schemas that answers are checked against, by node."""
    known = AgentSchema.objects.filter(project_id=project_id)
    return known.filter(current_since__isnull=False).order_by("node")


def versions_of(project_id: int, node: str) -> QuerySet[AgentSchema]:
    rows = AgentSchema.objects.filter(project_id=project_id, node=node)
    return rows.order_by("-created_at", "-pk")


def schemas_for(project_id: int, nodes: Collection[str]) -> dict[str, AgentSchema]:
    rows = current_schemas(project_id).filter(node__in=nodes)
    return {row.node: row for row in rows}


def _store(project: Project, node: str, json_schema: JSON, version: str | None) -> AgentSchema:
    versions = list(versions_of(project.pk, node).select_for_update())
    if not versions:
        nodes = AgentSchema.objects.filter(project=project).values("node").distinct()
        if nodes.count() >= MAX_NODES:
            raise SchemaConflictError(FULL)
    row = _matching_version(versions, json_schema, version)
    if row is None:
        row = AgentSchema(project=project, node=node, json_schema=json_schema)
        latest = max((read_number(version.version, 9) or 0 for version in versions), default=0)
        row.version = version or str(latest + 1)
    elif row.current_since is not None:
        return row
    AgentSchema.objects.filter(pk__in=[version_row.pk for version_row in versions]).filter(
        current_since__isnull=False
    ).update(current_since=None)
    row.current_since = clock.now()
    row.save()
    row.refresh_from_db()
    old = versions_of(project.pk, node).filter(current_since__isnull=True)
    surplus = list(old.values_list("pk", flat=True)[MAX_VERSIONS - 1 :])
    AgentSchema.objects.filter(pk__in=surplus).delete()
    return row


def _matching_version(
    versions: list[AgentSchema], json_schema: JSON, version: str | None
) -> AgentSchema | None:
    if version is None:
        row = next((row for row in versions if row.current_since is not None), None)
    else:
        row = next((row for row in versions if row.version == version), None)
    # To Python, 1 and true are equal.
    if row is None or identity(row.json_schema) == identity(json_schema):
        return row
    if version is None:
        return None
    raise SchemaConflictError(TAKEN)


def _refuse_secrets(value: Any, pointer: str) -> None:  # noqa: ANN401 - any JSON
    """Refuse texts that would be masked: a masked schema would check something else."""
    if isinstance(value, str) and redact_found(value).found:
        raise SchemaFaultError(pointer, "secret", SECRET)
    if isinstance(value, list):
        for index, item in enumerate(value):
            _refuse_secrets(item, f"{pointer}/{index}")
    elif isinstance(value, dict):
        if not pointer and not redact_found(json.dumps(value)).found:
            return
        for name, item in value.items():
            if redact_found(name).found:
                raise SchemaFaultError(pointer, "secret", SECRET)
            _refuse_secrets(item, f"{pointer}/{escape_pointer(name)}")

"""/api/v1/schemas: an agent's own JSON Schemas, to check its answers."""

import re
from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from rest_framework import status
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.authentication import KeyedView, project_of
from diagnostics.ingest import agent_schemas
from diagnostics.ingest.schemas import SchemaFaultError
from diagnostics.redaction.redactor import redact
from diagnostics.rest.bodies import InvalidBodyError, read_object
from diagnostics.rest.resources import Paged, ProblemResource, Resource
from failsoft.events import describe_errors
from failsoft.json_values import clean_text

NODE = re.compile(r"[a-z][a-z0-9_-]{0,62}", re.ASCII)


class SchemaRequest(BaseModel):
    """A JSON Schema (draft 2020-12) and its version; without one, versions are numbered."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    json_schema: Any = Field(json_schema_extra={"type": ["object", "boolean"]})
    version: str | None = Field(default=None, min_length=1, max_length=200, pattern="^[^\\x00]+$")


class VersionResource(Resource):
    """A version of a node's schema."""

    version: str
    created_at: datetime
    current_since: datetime | None


class AgentSchemaResource(VersionResource):
    """The current schema of a node."""

    node: str
    json_schema: Any


class RegisteredResource(AgentSchemaResource):
    """The schema as registered; `ignored` are pointers to keywords that check nothing."""

    ignored: list[str]


class DetailResource(AgentSchemaResource):
    """The current schema of a node and every kept version, newest first."""

    versions: list[VersionResource]


class AgentSchemasView(KeyedView):
    required_scopes = {"GET": Scope.READ}

    @extend_schema(responses={200: Paged[AgentSchemaResource]})
    def get(self, request: Request) -> Response:
        """List the current schemas of the project."""
        rows = agent_schemas.current_schemas(project_of(request).pk)
        return Response({"items": [AgentSchemaResource.dump(row) for row in rows], "next": None})


class AgentSchemaView(KeyedView):
    # An agent registers its schema when it starts, with the key for its events.
    required_scopes = {"PUT": Scope.INGEST, "GET": Scope.READ, "DELETE": Scope.ADMIN}

    @extend_schema(
        operation_id="schemas_put",
        request=SchemaRequest,
        responses={
            200: RegisteredResource,
            **dict.fromkeys((400, 401, 403, 404, 409, 413, 415, 422), ProblemResource),
        },
    )
    def put(self, request: Request, node: str) -> Response:
        """Register a schema: answers of the node are checked against it from now on."""
        if not NODE.fullmatch(node):
            raise NotFound("a node has a lower-case name: a-z, 0-9, _ and -")
        try:
            schema_request = SchemaRequest.model_validate(read_object(request._request))
            row, schema = agent_schemas.register_schema(
                project_of(request), node, schema_request.json_schema, schema_request.version
            )
        except SchemaFaultError as error:
            path = f"/json_schema{error.path}"
            fault = {"path": path, "code": error.code, "message": error.message}
            raise InvalidBodyError([_redacted(fault)]) from error
        except ValidationError as error:
            faults = [_redacted(fault) for fault in describe_errors(error)]
            raise InvalidBodyError(faults) from error
        return Response({**AgentSchemaResource.dump(row), "ignored": list(schema.ignored)})

    @extend_schema(
        operation_id="schemas_get", responses={200: DetailResource, 404: ProblemResource}
    )
    def get(self, request: Request, node: str) -> Response:
        """Show the current schema of a node and its versions."""
        project_id = project_of(request).pk
        row = agent_schemas.current_schemas(project_id).filter(node=clean_text(node)).first()
        if row is None:
            raise NotFound
        versions = agent_schemas.versions_of(project_id, row.node).defer("json_schema")
        version_resources = [VersionResource.dump(version) for version in versions]
        return Response({**AgentSchemaResource.dump(row), "versions": version_resources})

    @extend_schema(operation_id="schemas_delete", responses={204: None, 404: ProblemResource})
    def delete(self, request: Request, node: str) -> Response:
        """Stop checking the answers of a node; its versions are kept."""
        if not agent_schemas.retire_schema(project_of(request), clean_text(node)):
            raise NotFound
        return Response(status=status.HTTP_204_NO_CONTENT)


def _redacted(fault: dict[str, str]) -> dict[str, str]:
    """Redact a fault: it may quote names of properties from the body."""
    return {name: redact(text) for name, text in fault.items()}

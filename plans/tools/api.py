"""GET /api/v1/tools: what steps can call; PUT: whether this project may."""

from datetime import datetime
from typing import Annotated, Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from pydantic import AliasPath, BaseModel, ConfigDict, Field
from rest_framework.request import Request
from rest_framework.response import Response

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.authentication import KeyedView, key_of, project_of
from diagnostics.rest.filters import read_options
from diagnostics.rest.resources import Json, Listed, ProblemResource, Resource
from plans.tools.registry import ListedTool, list_servers, list_tools, set_allowed


class ToolFlags(Resource):
    """The properties of a tool; `native_name` is for a provider's native tool calls."""

    name: str
    native_name: str
    description: str
    source: Annotated[str, Field(description="python, or mcp:<server>")]
    side_effects: bool
    idempotent: bool
    offered: Annotated[bool, Field(description="Whether planners are offered the tool.")]
    timeout_seconds: Annotated[float, Field(json_schema_extra={"format": "double"})] | None
    max_concurrent: int | None


class ToolResource(ToolFlags):
    """A tool: its schema, its flags, and whether the project may call it."""

    arguments: Annotated[Json, Field(alias="schema", description="JSON Schema of the arguments.")]
    allowed: bool


class McpServerResource(Resource):
    """A configured MCP server and its health."""

    name: str
    transport: Annotated[str, Field(description="stdio or http")]
    state: Annotated[str, Field(description="ok, failing or not_asked")]
    tools: int
    seen_at: Annotated[datetime | None, Field(validation_alias=AliasPath("seen", "seen_at"))]
    error_at: Annotated[datetime | None, Field(validation_alias=AliasPath("seen", "error_at"))]
    last_error: Annotated[str, Field(validation_alias=AliasPath("seen", "last_error"))]


class ToolList(Listed[ToolResource]):
    """All tools, and the configured MCP servers."""

    servers: list[McpServerResource]


class AllowedRequest(BaseModel):
    """Whether the project may call the tool."""

    model_config = ConfigDict(extra="forbid")

    allowed: bool


class ToolsView(KeyedView):
    required_scopes = {"GET": Scope.READ}

    @extend_schema(responses=ToolList)
    def get(self, request: Request) -> Response:
        """List tools by source and name."""
        tools = list_tools(project_of(request).pk)
        return Response(
            {
                "items": [_describe(listed) for listed in tools],
                "servers": [McpServerResource.dump(server) for server in list_servers(tools)],
            }
        )


class ToolView(KeyedView):
    required_scopes = {"GET": Scope.READ, "PUT": Scope.ADMIN}

    @extend_schema(responses={200: ToolResource, 404: ProblemResource})
    def get(self, request: Request, name: str) -> Response:
        """Show a tool."""
        return Response(_describe(_find(request, name)))

    @extend_schema(
        request=AllowedRequest,
        responses={200: ToolResource, **dict.fromkeys((400, 404), ProblemResource)},
    )
    def put(self, request: Request, name: str) -> Response:
        """Allow or deny the tool in the project; running steps are not stopped."""
        listed = _find(request, name)
        body = read_options(AllowedRequest, request.data)
        project_id, key = project_of(request).pk, key_of(request)
        set_allowed(project_id, listed.tool.name, allowed=body.allowed, by=key)
        return Response(_describe(_find(request, name)))


def _find(request: Request, name: str) -> ListedTool:
    for listed in list_tools(project_of(request).pk):
        if name in (listed.tool.name, listed.tool.native_name):
            return listed
    raise Http404


def _describe(listed: ListedTool) -> dict[str, Any]:
    tool = listed.tool
    return {**ToolFlags.dump(tool), "schema": tool.schema(), "allowed": listed.allowed}

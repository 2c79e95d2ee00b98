"""GET /api/v1/tools: what steps can call; PUT: whether this project may."""

from typing import Any

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.authentication import (
    KeyedView,
    project_of,
)
from diagnostics.rest.openapi import ProblemSerializer
from plans.tools.registry import ListedServer, ListedTool, list_servers, list_tools, set_allowed


class ToolSerializer(serializers.Serializer[Any]):
    """A tool: its schema, its flags, and whether the project may call it."""

    name = serializers.CharField()
    native_name = serializers.CharField(
        help_text="The name for a provider's native tool calls; plans may use it too."
    )
    description = serializers.CharField()
    source = serializers.CharField(  # type: ignore[assignment] # a field
        help_text="python, or mcp:<server>"
    )
    schema = serializers.DictField(help_text="JSON Schema of the arguments.")
    side_effects = serializers.BooleanField()
    idempotent = serializers.BooleanField()
    offered = serializers.BooleanField(help_text="Whether planners are told about it.")
    timeout_seconds = serializers.FloatField(allow_null=True)
    max_concurrent = serializers.IntegerField(allow_null=True)
    allowed = serializers.BooleanField()


class McpServerSerializer(serializers.Serializer[Any]):
    """A configured MCP server and its health."""

    name = serializers.CharField()
    transport = serializers.CharField(help_text="stdio or http")
    state = serializers.CharField(help_text="ok, failing or not_asked")
    tools = serializers.IntegerField()
    seen_at = serializers.DateTimeField(allow_null=True)
    error_at = serializers.DateTimeField(allow_null=True)
    last_error = serializers.CharField()


class ToolListSerializer(serializers.Serializer[Any]):
    """All tools, and the MCP servers that some of them come from."""

    items = ToolSerializer(many=True)
    servers = McpServerSerializer(many=True)


class AllowedSerializer(serializers.Serializer[Any]):
    """Whether the project may call the tool."""

    allowed = serializers.BooleanField()


class ToolsView(KeyedView):
    """The tools of this installation, as the key's project sees them."""

    required_scopes = {"GET": Scope.READ, "OPTIONS": Scope.READ}

    @extend_schema(operation_id="tools_list", responses=ToolListSerializer)
    def get(self, request: Request) -> Response:
        """List tools by source and name."""
        tools = list_tools(project_of(request).pk)
        return Response(
            {
                "items": [_describe(listed) for listed in tools],
                "servers": [_describe_server(server) for server in list_servers(tools)],
            }
        )


class ToolView(KeyedView):
    """One tool."""

    required_scopes = {
        "GET": Scope.READ,
        "PUT": Scope.ADMIN,
        "OPTIONS": Scope.READ,
    }

    @extend_schema(
        operation_id="tools_retrieve",
        responses={200: ToolSerializer, 404: ProblemSerializer},
    )
    def get(self, request: Request, name: str) -> Response:
        """Show a tool."""
        return Response(_describe(_find(request, name)))

    @extend_schema(
        operation_id="tools_update",
        request=AllowedSerializer,
        responses={
            200: ToolSerializer,
            **dict.fromkeys((400, 404), ProblemSerializer),
        },
    )
    def put(self, request: Request, name: str) -> Response:
        """Let the project call the tool, or not; running steps are not stopped."""
        listed = _find(request, name)
        body = AllowedSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        project_id = project_of(request).pk
        set_allowed(project_id, listed.tool.name, allowed=body.validated_data["allowed"])
        return Response(_describe(_find(request, name)))


def _find(request: Request, name: str) -> ListedTool:
    for listed in list_tools(project_of(request).pk):
        if name in (listed.tool.name, listed.tool.native_name):
            return listed
    raise Http404


def _describe(listed: ListedTool) -> dict[str, Any]:
    tool = listed.tool
    return {
        "name": tool.name,
        "native_name": tool.native_name,
        "description": tool.description,
        "source": tool.source,
        "schema": tool.schema(),
        "side_effects": tool.side_effects,
        "idempotent": tool.idempotent,
        "offered": tool.offered,
        "timeout_seconds": tool.timeout_seconds,
        "max_concurrent": tool.max_concurrent,
        "allowed": listed.allowed,
    }


def _describe_server(server: ListedServer) -> dict[str, Any]:
    return {
        "name": server.name,
        "transport": server.transport,
        "state": server.state,
        "tools": server.tools,
        "seen_at": server.seen.seen_at if server.seen else None,
        "error_at": server.seen.error_at if server.seen else None,
        "last_error": server.seen.last_error if server.seen else "",
    }

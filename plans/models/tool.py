"""Rows about tools: project policies, concurrency slots, MCP servers and their tools."""

from django.conf import settings
from django.db import models
from django.db.models.functions import Now

from diagnostics.accounts.models import Project
from diagnostics.constraints import NamedRow, unique

TOOL_NAME_CHARACTERS = 64
SERVER_NAME_CHARACTERS = 30


class ProjectToolPolicy(models.Model):
    """Whether a project may call a tool; without a row it may."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="+")
    tool = models.CharField(max_length=TOOL_NAME_CHARACTERS)
    allowed = models.BooleanField()
    changed_at = models.DateTimeField(db_default=Now())
    # Null for a change made through the REST API.
    changed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+"
    )

    class Meta:
        verbose_name_plural = "project tool policies"
        constraints = [unique("plans_project_tool_policy_once", "project tool")]

    def __str__(self) -> str:
        return f"{self.tool} {'allowed' if self.allowed else 'not allowed'}"


class ToolSlot(NamedRow):
    """A concurrency slot of a tool, free or held until its lease ends."""

    named = "{0.tool} {0.number}"
    tool = models.CharField(max_length=TOOL_NAME_CHARACTERS)
    number = models.PositiveIntegerField()
    holder = models.UUIDField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = [unique("plans_tool_slot_once", "tool number")]


class McpServer(NamedRow):
    """The last known health of a configured MCP server."""

    name = models.CharField(max_length=SERVER_NAME_CHARACTERS, unique=True)
    transport = models.CharField(max_length=8)
    server_name = models.CharField(max_length=200, blank=True, default="")
    server_version = models.CharField(max_length=100, blank=True, default="")
    protocol_version = models.CharField(max_length=32, blank=True, default="")
    # SHA-256 of the tools at the last discovery.
    digest = models.CharField(max_length=64, blank=True, default="")
    asked_at = models.DateTimeField(null=True, blank=True)
    seen_at = models.DateTimeField(null=True, blank=True)
    # Redacted; empty after a successful attempt.
    last_error = models.TextField(blank=True, default="")
    error_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = "MCP server"


class McpTool(NamedRow):
    """A discovered tool of an MCP server; `name` is its name in plans."""

    server = models.ForeignKey(McpServer, models.CASCADE, related_name="tools")
    name = models.CharField(max_length=TOOL_NAME_CHARACTERS, unique=True)
    remote_name = models.TextField()
    description = models.TextField(blank=True, default="")
    input_schema = models.JSONField()
    digest = models.CharField(max_length=64)
    side_effects = models.BooleanField(default=True)
    idempotent = models.BooleanField(default=False)
    discovered_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ["name"]
        verbose_name = "MCP tool"

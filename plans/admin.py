"""Django admin: runs and tools are read-only, tool policies can be changed."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from diagnostics.accounts.administration import ScopedAdmin, register_read_only
from plans.models.run import Run, RunStep
from plans.models.tool import McpServer, McpTool, ProjectToolPolicy


@admin.register(ProjectToolPolicy)
class ProjectToolPolicyAdmin(ScopedAdmin):
    """Tool policies of projects; without a row a project may call a tool."""

    list_display = ("project", "tool", "allowed", "changed_at", "changed_by")
    list_filter = ("project", "allowed")
    list_select_related = ("project", "changed_by")
    search_fields = ("tool",)
    fields = ("project", "tool", "allowed")

    def save_model(
        self,
        request: HttpRequest,
        obj: Any,  # noqa: ANN401 - as Django has it
        form: Any,  # noqa: ANN401 - as Django has it
        change: bool,
    ) -> None:
        obj.changed_by = request.user
        super().save_model(request, obj, form, change)


register_read_only(
    Run,
    "id correlation_id state task_status created_at",
    "project state task_status",
    search="correlation_id",
)
register_read_only(
    RunStep,
    "run step_id tool state ok skipped reason",
    "project state ok skipped",
    list_select_related=("run",),
)
# The health of MCP servers, which are configured in a file.
register_read_only(McpServer, "name transport seen_at error_at last_error")
# Tools of MCP servers as they were discovered.
register_read_only(
    McpTool,
    "name server side_effects idempotent discovered_at",
    "server",
    search="name",
    list_select_related=("server",),
)

"""Django admin: runs and tools are read-only, tool policies can be changed."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from diagnostics.accounts.administration import ReadOnlyAdmin, ScopedAdmin
from plans.models.run import Run, RunStep
from plans.models.tool import McpServer, McpTool, ProjectToolPolicy


@admin.register(Run)
class RunAdmin(ReadOnlyAdmin):
    """Executions of plans."""

    list_display = ("id", "correlation_id", "state", "task_status", "created_at")
    list_filter = ("project", "state", "task_status")
    search_fields = ("correlation_id",)
    show_full_result_count = False


@admin.register(RunStep)
class RunStepAdmin(ReadOnlyAdmin):
    """Steps of runs."""

    list_display = ("run", "step_id", "tool", "state", "ok", "skipped", "reason")
    list_filter = ("project", "state", "ok", "skipped")
    list_select_related = ("run",)
    show_full_result_count = False


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
        """Store who changed the policy."""
        obj.changed_by = request.user
        super().save_model(request, obj, form, change)


@admin.register(McpServer)
class McpServerAdmin(ReadOnlyAdmin):
    """The health of MCP servers, which are configured in a file."""

    list_display = ("name", "transport", "seen_at", "error_at", "last_error")


@admin.register(McpTool)
class McpToolAdmin(ReadOnlyAdmin):
    """Tools of MCP servers as they were discovered."""

    list_display = ("name", "server", "side_effects", "idempotent", "discovered_at")
    list_filter = ("server",)
    list_select_related = ("server",)
    search_fields = ("name",)

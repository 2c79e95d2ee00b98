"""Administration: runs and their steps are there to be looked at."""

from django.contrib import admin

from diagnostics.admin import ReadOnlyAdmin
from plans.models import Run, RunStep


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

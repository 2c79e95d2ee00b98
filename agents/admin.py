"""Administration: providers and models are set up here; goals are there to be looked at."""

from django.contrib import admin

from agents.models import Attempt, Goal, LanguageModel, Provider
from diagnostics.admin import ReadOnlyAdmin


class LanguageModelInline(admin.TabularInline):  # type: ignore[type-arg] # plain at run time
    """The models of a provider, in short; each has a page of its own."""

    model = LanguageModel
    extra = 0
    fields = ("name", "enabled", "is_default")
    show_change_link = True
    can_delete = False

    def has_add_permission(self, request: object, obj: object = None) -> bool:
        """Models are added on their own page, where all their fields are."""
        return False


@admin.register(Provider)
class ProviderAdmin(admin.ModelAdmin):  # type: ignore[type-arg] # plain at run time
    """Providers: their credential is a reference, never a value."""

    list_display = ("name", "adapter", "base_url", "credential", "enabled", "project")
    list_filter = ("project", "adapter", "enabled")
    inlines = (LanguageModelInline,)


@admin.register(LanguageModel)
class LanguageModelAdmin(admin.ModelAdmin):  # type: ignore[type-arg] # plain at run time
    """Models, and how they are called."""

    list_display = (
        "name",
        "provider",
        "is_default",
        "enabled",
        "output_mode",
        "last_output_mode",
        "max_output_tokens",
    )
    list_filter = ("project", "provider", "enabled")
    list_select_related = ("provider",)


@admin.register(Goal)
class GoalAdmin(ReadOnlyAdmin):
    """Goals, as the console shows them."""

    list_display = ("correlation_id", "status", "outcome", "mode", "created_at")
    list_filter = ("project", "status", "outcome", "mode")
    search_fields = ("correlation_id",)
    show_full_result_count = False


@admin.register(Attempt)
class AttemptAdmin(ReadOnlyAdmin):
    """Calls of providers."""

    list_display = ("goal", "node", "cycle", "attempt", "state", "error_type", "model")
    list_filter = ("project", "state", "error_type")
    list_select_related = ("goal",)
    show_full_result_count = False

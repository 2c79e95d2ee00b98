"""Administration: set up providers and models; goals are read-only."""

from typing import Any

from django.contrib import admin, messages
from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import OuterRef, QuerySet, Value
from django.db.models.functions import Concat
from django.http import HttpRequest

from agents.breakers.models import Breaker, BreakerTransition
from agents.breakers.store import ManualChange, close_breaker, isolate_breaker
from agents.fix_patterns.models import FixPattern, FixPolicy
from agents.goals.models import Attempt, Goal
from agents.llm.models import LanguageModel, Provider
from diagnostics.accounts.administration import ReadOnlyAdmin, ScopedAdmin, register_read_only


class LanguageModelInline(admin.TabularInline):  # type: ignore[type-arg] # plain at run time
    """The models of a provider in brief; each has its own page."""

    model = LanguageModel
    extra = 0
    fields = readonly_fields = ("name", "enabled", "is_default")
    show_change_link = True
    can_delete = False

    def has_add_permission(self, request: object, obj: object = None) -> bool:
        """Models are added on their own page, which has all fields."""
        return False


@admin.register(Provider)
class ProviderAdmin(ScopedAdmin):
    """Providers: their credential is a reference, never a value."""

    list_display = ("name", "adapter", "base_url", "credential", "enabled", "project")
    list_filter = ("project", "adapter", "enabled")
    inlines = (LanguageModelInline,)


@admin.register(LanguageModel)
class LanguageModelAdmin(ScopedAdmin):
    """Models and the settings of their calls."""

    list_display = (
        "name",
        "provider",
        "is_default",
        "enabled",
        "output_mode",
        "last_output_mode",
        "max_output_tokens",
        "breakers",
    )
    list_filter = ("project", "provider", "enabled")
    list_select_related = ("provider",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Annotate each model with its breakers that are not closed."""
        not_closed = Breaker.objects.filter(
            project=OuterRef("project"), provider=OuterRef("provider__name"), model=OuterRef("name")
        ).exclude(state=Breaker.State.CLOSED)
        description = Concat("operation", Value(" "), "kind", Value(": "), "state")
        models: QuerySet[Any] = super().get_queryset(request)
        annotated: QuerySet[Any] = models.annotate(
            not_closed=ArraySubquery(not_closed.values_list(description))
        )
        return annotated

    @admin.display(description="Breakers not closed")
    def breakers(self, model: Any) -> str:  # noqa: ANN401 - a row with its breakers
        """Return operation, kind and state of each."""
        return ", ".join(model.not_closed)


class BreakerTransitionInline(admin.TabularInline):  # type: ignore[type-arg] # plain at run time
    """The history of a breaker, newest first, read-only."""

    model = BreakerTransition
    extra = 0
    can_delete = False
    fields = readonly_fields = ("at", "from_state", "to_state", "cause", "actor", "reason")

    def has_add_permission(self, request: object, obj: object = None) -> bool:
        """Transitions cannot be added."""
        return False


@admin.register(Breaker)
class BreakerAdmin(ReadOnlyAdmin):
    """Circuit breakers: read-only, with actions to open or close them."""

    list_display = (
        "provider",
        "model",
        "operation",
        "kind",
        "state",
        "cause",
        "open_until",
        "changed_at",
    )
    list_filter = ("project", "state", "kind")
    inlines = (BreakerTransitionInline,)
    actions = ("isolate", "close")

    @admin.action(description="Isolate: nothing passes", permissions=["act"])
    def isolate(self, request: HttpRequest, queryset: QuerySet[Breaker]) -> None:
        """Open the selected breakers until they are closed manually."""
        changed = sum(isolate_breaker(row.pk, ManualChange(request.user)) for row in queryset)
        self.message_user(request, f"{changed} breakers isolated.", messages.WARNING)

    @admin.action(description="Close: forget all faults", permissions=["act"])
    def close(self, request: HttpRequest, queryset: QuerySet[Breaker]) -> None:
        changed = sum(close_breaker(row.pk, ManualChange(request.user)) for row in queryset)
        self.message_user(request, f"{changed} breakers closed.")

    def has_act_permission(self, request: HttpRequest) -> bool:
        """Whether the user may change breakers."""
        return bool(request.user.has_perm("agents.change_breaker"))


register_read_only(
    Goal,
    "correlation_id status outcome mode created_at",
    "project status outcome mode",
    search="correlation_id",
)
# Fix patterns; decisions are made on their own page.
register_read_only(
    FixPattern,
    "schema error_class code pointer change successes decision last_success_at",
    "project schema error_class decision",
)
register_read_only(FixPolicy, "project mode changed_by changed_at")
register_read_only(
    Attempt,
    "goal node cycle attempt state error_type model",
    "project state error_type model",
    search="goal__correlation_id",
    list_select_related=("goal",),
)

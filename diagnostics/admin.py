"""Administration: projects and their members; everything else is read-only."""

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from django.contrib import admin
from django.core.paginator import Paginator
from django.db.models import Model, Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join

from diagnostics import figures
from diagnostics.accounts.administration import (
    ReadOnlyAdmin,
    ScopedAdmin,
    administered_projects,
    register_read_only,
)
from diagnostics.accounts.models import ApiKey, Membership, Project
from diagnostics.accounts.projects import revoke_key
from diagnostics.ingest.models import AgentSchema, Deploy, Quota, Reject
from diagnostics.store.models import EventPayload, Heartbeat, OutboxMessage, Series, StoredEvent
from failsoft.events import EventKind
from failsoft.identifiers import read_uuid


class MembershipInline(admin.TabularInline):  # type: ignore[type-arg] # plain at run time
    """Members on the page of their project; changed on its settings page."""

    model = Membership
    extra = 0
    fields = readonly_fields = ("user", "role", "created_at")
    can_delete = False

    def has_add_permission(self, request: object, obj: object = None) -> bool:
        """Members are added by invitation only."""
        return False


@admin.register(Project)
class ProjectAdmin(ScopedAdmin):
    list_display = ("name", "slug", "created_at")
    search_fields = ("name", "slug")
    inlines = (MembershipInline,)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Projects cannot be deleted here: a cascade would not delete their events."""
        return False


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnlyAdmin):
    """Keys: created by `manage.py create_key`, revoked here."""

    list_display = ("name", "key_id", "project", "scopes", "last_used_at", "revoked_at")
    list_filter = ("project",)
    exclude = ("secret_hash",)
    actions = ("revoke",)

    @admin.action(description="Revoke", permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        closed = sum(revoke_key(key, request.user) for key in queryset)
        self.message_user(request, f"{figures.plural(closed, 'key')} revoked.")

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return bool(request.user.has_perm("diagnostics.change_apikey"))


@admin.register(Quota)
class QuotaAdmin(ScopedAdmin):
    """Limits of projects: an empty field has the installation's default, 0 is no limit."""

    list_display = (
        *("project", "key_events_per_second", "key_burst_events", "events_per_day"),
        *("events_per_month", "spike_events_per_minute"),
    )


MOST_COUNTED = 10_000


class CappedPaginator(Paginator):  # type: ignore[type-arg] # plain at run time
    """Pages of a list too large to be counted."""

    @cached_property
    def count(self) -> int:
        rows: Any = self.object_list
        return int(rows[:MOST_COUNTED].count())


class KindFilter(admin.SimpleListFilter):
    title = parameter_name = "kind"

    def lookups(self, request: HttpRequest, model_admin: object) -> list[tuple[str, str]]:
        """Offer every kind, without a query for those in use."""
        return [(kind.value, kind.value) for kind in EventKind]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(kind=self.value()) if self.value() else queryset


class SeriesFilter(admin.SimpleListFilter):
    def lookups(self, request: HttpRequest, model_admin: object) -> Iterator[tuple[str, str]]:
        own_series = Series.objects.filter(project__in=projects_of(request))
        field = str(self.parameter_name)
        names = own_series.order_by(field).values_list(field, flat=True).distinct()[:100]
        return ((name, name) for name in map(str, filter(None, names)))

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value()
        return queryset.filter(**{str(self.parameter_name): value}) if value else queryset


def _series_filter(name: str) -> type[SeriesFilter]:
    return type(f"{name.title()}Filter", (SeriesFilter,), {"title": name, "parameter_name": name})


def projects_of(request: HttpRequest) -> QuerySet[Project]:
    projects = Project.objects.order_by("pk")
    return (
        projects
        if request.user.is_superuser
        else projects.filter(pk__in=administered_projects(request))
    )


@admin.register(StoredEvent)
class EventAdmin(ReadOnlyAdmin):
    """Events of one project at a time, newest first, read by index."""

    list_display = ("occurred_at", "kind", "environment", "provider", "model", "run")
    list_filter = (
        "project",
        KindFilter,
        *map(_series_filter, ("environment", "provider", "model")),
        "occurred_at",
    )
    readonly_fields = ("run", "preview", "errors")
    ordering = ("-occurred_at", "-event_id")
    sortable_by = ()
    search_fields = ("event_id", "correlation_id")
    paginator = CappedPaginator
    show_full_result_count = False
    list_per_page = 50

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:  # noqa: ANN401
        """Say under the title what the search takes and how far it counts."""
        help_text = f"Search by event id or correlation id; counted up to {MOST_COUNTED:,}"
        return super().changelist_view(request, {"subtitle": help_text})

    @admin.display(description="run")
    def run(self, event: StoredEvent) -> str:
        address = reverse("run", args=[event.correlation_id])
        return format_html('<a href="{}">{}</a>', address, event.correlation_id)

    @admin.display(description="output (redacted)")
    def preview(self, event: StoredEvent) -> str:
        text = _payload_of(event).get("raw_output_preview")
        return format_html("<pre>{}</pre>", text) if text else figures.DASH

    @admin.display(description="validation errors")
    def errors(self, event: StoredEvent) -> str:
        rows = _payload_of(event).get("validation_errors") or []
        lines = ((error.get("path") or "/", error.get("message", "")) for error in rows)
        return format_html_join("", "<div><code>{}</code> {}</div>", lines) or figures.DASH

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        project_id = request.GET.get("project__id__exact")
        first = projects_of(request).values_list("pk", flat=True).first()
        rows = super().get_queryset(request)
        match = request.resolver_match
        is_list = match is not None and str(match.url_name).endswith("_changelist")
        return rows.filter(project=first) if is_list and not project_id else rows

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Model | None:
        """Return an event by the index of each project: an id is unique within a project only."""
        event_id = read_uuid(object_id)
        if event_id is None:
            return None
        # A list of values, so that each is looked up by index.
        projects = list(projects_of(request).values_list("pk", flat=True))
        rows = self.get_queryset(request).filter(project__in=projects, event_id=event_id)
        event: Model | None = rows.first()
        return event

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Search by a complete id: there are too many events for a text search."""
        term = search_term.replace("\0", "").strip()
        if not term:
            return queryset, False
        condition = Q(correlation_id=term)
        if (event_id := read_uuid(term)) is not None:
            condition |= Q(event_id=event_id)
        return queryset.filter(condition), False


def _payload_of(event: StoredEvent) -> Mapping[str, Any]:
    key = {"project_id": event.project_id, "event_id": event.event_id}
    rows = EventPayload.objects.filter(**key, occurred_at=event.occurred_at)
    return rows.values("raw_output_preview", "validation_errors").first() or {}


# Messages that wait for the broker, and why.
register_read_only(OutboxMessage, "task queue available_at sent_at tries last_error", "task queue")
register_read_only(Heartbeat, "name at")
register_read_only(Reject, "received_at project endpoint code path source", "project code")
register_read_only(Deploy, "at project kind version source", "project kind")
# JSON Schemas of nodes' answers, every stored version.
register_read_only(AgentSchema, "node version project created_at current_since", "project")

"""Administration: projects and their members; the rest is there to be looked at."""

from typing import Any

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from diagnostics.accounts.administration import ReadOnlyAdmin, ScopedAdmin
from diagnostics.accounts.models import ApiKey, Membership, Project
from diagnostics.accounts.projects import revoke_key
from diagnostics.ingest.models import AgentSchema, Deploy, Quota, Reject
from diagnostics.store.models import Heartbeat, OutboxMessage


class MembershipInline(admin.TabularInline):  # type: ignore[type-arg] # plain at run time
    """Members on the page of their project; changed on its settings page."""

    model = Membership
    extra = 0
    fields = readonly_fields = ("user", "role", "created_at")
    can_delete = False

    def has_add_permission(self, request: object, obj: object = None) -> bool:
        """Nobody adds here: an invitation does."""
        return False


@admin.register(Project)
class ProjectAdmin(ScopedAdmin):
    """Projects, with their members."""

    list_display = ("name", "slug", "created_at")
    search_fields = ("name", "slug")
    inlines = (MembershipInline,)

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Keep projects: their events are no cascade's to delete."""
        return False


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnlyAdmin):
    """Keys: made by `manage.py create_key`, revoked here."""

    list_display = ("name", "key_id", "project", "scopes", "last_used_at", "revoked_at")
    list_filter = ("project",)
    exclude = ("secret_hash",)
    actions = ("revoke",)

    @admin.action(description="Revoke", permissions=["revoke"])
    def revoke(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Close the chosen keys for good."""
        closed = sum(revoke_key(key) for key in queryset)
        self.message_user(request, f"{closed} keys revoked.")

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        """Whether this person may revoke: whoever might change keys."""
        return bool(request.user.has_perm("diagnostics.change_apikey"))


@admin.register(OutboxMessage)
class OutboxMessageAdmin(ReadOnlyAdmin):
    """What waits for the broker, and why."""

    list_display = ("task", "queue", "available_at", "sent_at", "tries", "last_error")
    list_filter = ("task", "queue")


@admin.register(Heartbeat)
class HeartbeatAdmin(ReadOnlyAdmin):
    """When the parts were last seen at work."""

    list_display = ("name", "at")


@admin.register(Quota)
class QuotaAdmin(ScopedAdmin):
    """What projects may send: an empty field is the installation's default, 0 no limit."""

    list_display = (
        "project",
        "key_events_per_second",
        "key_burst_events",
        "events_per_day",
        "events_per_month",
        "spike_events_per_minute",
    )


@admin.register(Reject)
class RejectAdmin(ReadOnlyAdmin):
    """What was refused at the door."""

    list_display = ("received_at", "project", "endpoint", "code", "path", "source")
    list_filter = ("project", "code")


@admin.register(Deploy)
class DeployAdmin(ReadOnlyAdmin):
    """What was changed when."""

    list_display = ("at", "project", "kind", "version", "source")
    list_filter = ("project", "kind")


@admin.register(AgentSchema)
class AgentSchemaAdmin(ReadOnlyAdmin):
    """What answers of a node must look like, every kept version."""

    list_display = ("node", "version", "project", "created_at", "current_since")
    list_filter = ("project",)

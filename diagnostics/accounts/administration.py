"""Django's admin, mostly read-only, and limited to the user's projects.

Staff who are not superusers see only the rows of the projects they administer, and none
without a project.
"""

from collections.abc import Iterator
from operator import attrgetter
from typing import Any

from django.apps import apps
from django.contrib import admin
from django.db.models import BinaryField, CompositePrimaryKey, ForeignKey, Model, QuerySet
from django.http import HttpRequest

from diagnostics.accounts.audit_log import note
from diagnostics.accounts.models import Membership, Project
from failsoft.json_values import JSON

# Fields that are never shown, in any model.
HIDDEN = frozenset(
    {
        *("secret", "token", "token_hash", "secret_hash", "hash", "sealed", "value"),
        *("data", "session_key", "password", "config", "cursor", "details_sealed"),
    }
)
MOST_COLUMNS = 6
DEPTH = 2
OURS = ("agents", "plans", "diagnostics")


def project_path(model: type[Model], depth: int = DEPTH) -> str | None:
    """Return the path from a row to its project, like `group__project`; None without one."""
    if model is Project:
        return "pk"
    foreign = [f for f in model._meta.fields if isinstance(f, ForeignKey)]
    for field in foreign:
        if field.related_model is Project:
            return field.name
    if depth:
        for field in foreign:
            owner: Any = field.related_model
            if owner._meta.app_label in OURS:
                path = project_path(owner, depth - 1)
                if path is not None:
                    return f"{field.name}__{path}"
    return None


def administered_projects(request: HttpRequest) -> QuerySet[Any]:
    memberships = Membership.objects.filter(user_id=request.user.pk or 0, role="admin")
    return memberships.values("project_id")


class SentenceFilter(admin.ChoicesFieldListFilter):
    def choices(self, changelist: Any) -> Iterator[Any]:  # noqa: ANN401 - Django's
        """Return the choices; the first is "all"."""
        all_values, *rest = super().choices(changelist)
        yield all_values
        for choice in rest:
            yield {**choice, "display": str(choice["display"]).capitalize()}


def _column(model: type[Model], name: Any) -> Any:  # noqa: ANN401 - Django's
    """Return a column with choices in sentence case; any other field unchanged."""
    field = next((candidate for candidate in model._meta.fields if candidate.name == name), None)
    if field is None or not field.flatchoices:
        return name

    @admin.display(description=str(field.verbose_name), ordering=name, empty_value="-")
    def column(row: Model) -> str | None:
        value = getattr(row, name)
        return None if value in (None, "") else str(value).replace("_", " ").capitalize()

    return column


class AuditedAdmin(admin.ModelAdmin):  # type: ignore[type-arg] # plain at run time
    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:  # noqa: ANN401
        _note(request, obj, "added")
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:  # noqa: ANN401
        _note(request, obj, "changed", message)
        return super().log_change(request, obj, message)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:  # noqa: ANN401
        for obj in queryset:
            _note(request, obj, "deleted")
        return super().log_deletions(request, queryset)


class ScopedAdmin(AuditedAdmin):
    """Rows of the user's projects, or all for superusers."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows: QuerySet[Any] = super().get_queryset(request)
        if request.user.is_superuser:
            return rows
        path = project_path(self.model)
        return (
            rows.filter(**{f"{path}__in": administered_projects(request)}) if path else rows.none()
        )

    def get_list_display(self, request: HttpRequest) -> Any:  # noqa: ANN401 - Django's
        return [_column(self.model, name) for name in super().get_list_display(request)]

    def get_list_filter(self, request: HttpRequest) -> Any:  # noqa: ANN401 - Django's
        """Remove filters that would list other projects or their rows."""
        filters = super().get_list_filter(request)
        if request.user.is_superuser:
            return filters
        foreign = {field.name for field in self.model._meta.fields if field.many_to_one}
        return [name for name in filters if name not in foreign]

    def formfield_for_foreignkey(
        self,
        db_field: Any,  # noqa: ANN401 - Django's
        request: HttpRequest,
        **kwargs: Any,
    ) -> Any:  # noqa: ANN401 - Django's
        """Offer rows of the user's projects only."""
        path = project_path(db_field.related_model)
        if not request.user.is_superuser and path is not None:
            rows = db_field.related_model._default_manager.all()
            kwargs["queryset"] = rows.filter(**{f"{path}__in": administered_projects(request)})
        return super().formfield_for_foreignkey(db_field, request, **kwargs)


class ReadOnlyAdmin(ScopedAdmin):
    """Rows that only the product itself writes."""

    def _refuse(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    has_add_permission = has_change_permission = has_delete_permission = _refuse


def register_read_only(
    model: type[Model], columns: str, filters: str = "", search: str = "", **more: object
) -> None:
    """Register a read-only page of a model: columns, filters and searched fields of its list."""
    options = {
        "list_display": columns.split(),
        "list_filter": filters.split(),
        "search_fields": search.split(),
        **more,
    }
    admin.site.register(model, _read_only(model, options))


def register_rest() -> list[type[Model]]:
    """Register every model without a page of its own, read-only.

    Django's admin supports no model with a composite key: of these, events have a
    model of their own (StoredEvent).
    """
    models = [
        model
        for model in apps.get_models()
        if model._meta.app_label in OURS
        and not isinstance(model._meta.pk, CompositePrimaryKey)
        and not admin.site.is_registered(model)
    ]
    for model in models:
        admin.site.register(model, read_only(model))
    return models


def read_only(model: type[Model]) -> type[ReadOnlyAdmin]:
    """Return a read-only page of a model without its secret fields."""
    fields = [
        field
        for field in model._meta.fields
        if not isinstance(field, BinaryField) and field.name not in HIDDEN
    ]
    columns = [field.name for field in fields if not field.remote_field]
    listed = columns[:MOST_COLUMNS] or ("__str__",)
    return _read_only(model, {"list_display": listed, "fields": [field.name for field in fields]})


def _read_only(model: type[Model], options: dict[str, object]) -> type[ReadOnlyAdmin]:
    common = {"__module__": __name__, "show_full_result_count": False}
    return type(f"{model.__name__}Admin", (ReadOnlyAdmin,), {**common, **options})


def _note(request: HttpRequest, obj: Any, verb: str, message: Any = ()) -> None:  # noqa: ANN401
    path = project_path(type(obj))
    owner = attrgetter(path.replace("__", "."))(obj) if path else None
    project_id = owner.pk if isinstance(owner, Project) else owner
    kind = f"{type(obj)._meta.app_label}.{type(obj)._meta.model_name}"
    parts = [part["changed"] for part in message if isinstance(part, dict) and "changed" in part]
    fields = ", ".join(field for part in parts for field in part.get("fields", ()))
    details: dict[str, JSON] = {"changed": fields} if fields else {}
    note(project_id, request.user, f"admin.{verb}", f"{kind} {obj}", details)

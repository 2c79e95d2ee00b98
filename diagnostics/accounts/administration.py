"""Django's administration as this product has it: read-mostly, and bounded by projects.

Whoever is staff but no superuser sees the rows of the projects they administer, and nothing
that belongs to no project.
"""

from collections.abc import Iterator
from typing import Any

from django.apps import apps
from django.contrib import admin
from django.db.models import BinaryField, CompositePrimaryKey, Field, ForeignKey, Model, QuerySet
from django.http import HttpRequest

from diagnostics.accounts.audit_log import note
from diagnostics.accounts.models import Membership, Project

# What nobody looks at here, whatever it is called in a model.
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


def mine(request: HttpRequest) -> QuerySet[Any]:
    """Return the numbers of the projects that the person administers."""
    asked = Membership.objects.filter(user_id=request.user.pk or 0, role="admin")
    return asked.values("project_id")


def in_sentence_case(value: object) -> str:
    """Write a stored choice as pages do: `ok_first` as Ok first."""
    return str(value).replace("_", " ").capitalize()


class SentenceFilter(admin.ChoicesFieldListFilter):
    """The values of a choice, in sentence case."""

    def choices(self, changelist: Any) -> Iterator[Any]:  # noqa: ANN401 - Django's
        """Return what to choose from; the first is all of them."""
        every, *rest = super().choices(changelist)
        yield every
        for one in rest:
            yield {**one, "display": str(one["display"]).capitalize()}


def _column(model: type[Model], name: Any) -> Any:  # noqa: ANN401 - Django's
    """Show a choice in sentence case, any other field as it is."""
    field = next((one for one in model._meta.fields if one.name == name), None)
    if field is None or not field.flatchoices:
        return name

    @admin.display(description=str(field.verbose_name), ordering=name, empty_value="-")
    def column(row: Model) -> str | None:
        value = getattr(row, name)
        return None if value in (None, "") else in_sentence_case(value)

    return column


class ScopedAdmin(admin.ModelAdmin):  # type: ignore[type-arg] # plain at run time
    """Rows of one's own projects only, unless one is a superuser; changes are noted."""

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        """Leave out the rows of other projects."""
        rows: QuerySet[Any] = super().get_queryset(request)
        if request.user.is_superuser:
            return rows
        path = project_path(self.model)
        return rows.filter(**{f"{path}__in": mine(request)}) if path else rows.none()

    def get_list_display(self, request: HttpRequest) -> Any:  # noqa: ANN401 - Django's
        """Write choices as pages do."""
        return [_column(self.model, name) for name in super().get_list_display(request)]

    def get_list_filter(self, request: HttpRequest) -> Any:  # noqa: ANN401 - Django's
        """Name no other project, nor what belongs to it, in a filter."""
        found = super().get_list_filter(request)
        if request.user.is_superuser:
            return found
        foreign = {field.name for field in self.model._meta.fields if field.many_to_one}
        return [name for name in found if name not in foreign]

    def formfield_for_foreignkey(
        self,
        db_field: Any,  # noqa: ANN401 - Django's
        request: HttpRequest,
        **kwargs: Any,  # noqa: ANN401 - Django's
    ) -> Any:  # noqa: ANN401 - Django's
        """Offer rows of one's own projects only."""
        path = project_path(db_field.related_model)
        if not request.user.is_superuser and path is not None:
            rows = db_field.related_model._default_manager.all()
            kwargs["queryset"] = rows.filter(**{f"{path}__in": mine(request)})
        return super().formfield_for_foreignkey(db_field, request, **kwargs)

    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:  # noqa: ANN401
        """Note it in the audit log, too."""
        _note(request, obj, "added")
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:  # noqa: ANN401
        """Note it in the audit log, too."""
        _note(request, obj, "changed")
        return super().log_change(request, obj, message)

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:  # noqa: ANN401
        """Note it in the audit log, too."""
        for obj in queryset:
            _note(request, obj, "deleted")
        return super().log_deletions(request, queryset)


class ReadOnlyAdmin(ScopedAdmin):
    """Rows that only the product itself writes."""

    def _refuse(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    has_add_permission = has_change_permission = has_delete_permission = _refuse


def register_rest() -> list[type[Model]]:
    """Register every model of ours that has no page of its own yet, to be looked at.

    Django's administration takes no model with a composite key: of these, events have a
    model of their own (StoredEvent).
    """
    found = [
        model
        for model in apps.get_models()
        if model._meta.app_label in OURS
        and not isinstance(model._meta.pk, CompositePrimaryKey)
        and not admin.site.is_registered(model)
    ]
    for model in found:
        admin.site.register(model, read_only(model))
    return found


def read_only(model: type[Model]) -> type[ReadOnlyAdmin]:
    """Make a page that shows a model without what is secret in it."""
    fields = [field for field in model._meta.fields if not is_hidden(field)]
    columns = [field.name for field in fields if not field.remote_field]
    return type(
        f"{model.__name__}Admin",
        (ReadOnlyAdmin,),
        {
            "__doc__": f"{model._meta.verbose_name}, read-only.",
            "__module__": __name__,
            "list_display": columns[:MOST_COLUMNS] or ("__str__",),
            "fields": [field.name for field in fields],
            "show_full_result_count": False,
        },
    )


def is_hidden(field: "Field[Any, Any]") -> bool:
    """Whether a field holds what nobody needs to see."""
    return isinstance(field, BinaryField) or field.name in HIDDEN


def _note(request: HttpRequest, obj: Any, verb: str) -> None:  # noqa: ANN401 - any row
    path = project_path(type(obj))
    owner: Any = None
    if path == "pk":
        owner = obj.pk
    elif path is not None:
        owner = obj
        for name in path.split("__"):
            owner = getattr(owner, name)
        owner = owner.pk
    kind = f"{type(obj)._meta.app_label}.{type(obj)._meta.model_name}"
    note(owner, request.user, f"admin.{verb}", f"{kind} {obj}")

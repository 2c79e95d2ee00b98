"""Django's admin behind the sign-in of the product, with all its models."""

from collections.abc import Callable, Container
from operator import attrgetter
from typing import Any

from allauth.account.decorators import secure_admin_login
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialApp, SocialToken
from allauth.usersessions.models import UserSession
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import Group, User
from django.http import HttpRequest

from diagnostics.accounts.administration import (
    AuditedAdmin,
    SentenceFilter,
    read_only,
    register_rest,
)
from diagnostics.accounts.profiles import give_address

# Their packages register them with secrets; here they are read-only without.
OTHERS = (Authenticator, SocialApp, SocialToken, UserSession)


def _grouped(list_apps: Callable[..., Any], rest: Container[object]) -> Callable[..., Any]:
    def get_app_list(request: HttpRequest, app_label: str | None = None) -> Any:  # noqa: ANN401
        apps = list_apps(request, app_label)
        if app_label is not None:
            return apps
        internals = [model for app in apps for model in app["models"] if model["model"] in rest]
        for app in apps:
            app["models"] = [model for model in app["models"] if model["model"] not in rest]
        end = {"name": "Internals", "app_label": "internals", "app_url": "", "models": internals}
        return [app for app in (*apps, end) if app["models"]]

    return get_app_list


class Users(UserAdmin):  # type: ignore[type-arg] # plain at run time
    """Django's page of users; an address that is set there counts for single sign-on."""

    filter_horizontal = ()  # as one list: the icons of two have labels where none may be
    readonly_fields = ("last_login", "date_joined")

    def save_model(self, request: HttpRequest, obj: User, form: Any, change: bool) -> None:  # noqa: ANN401
        super().save_model(request, obj, form, change)
        if "email" in form.changed_data:
            give_address(obj)


def prepare_administration() -> None:
    """Register models without an admin page, and use the sign-in of the product."""
    for model in OTHERS:
        if admin.site.is_registered(model):
            admin.site.unregister(model)
        admin.site.register(model, read_only(model))
    if not admin.site.is_registered(LogEntry):
        admin.site.register(LogEntry, read_only(LogEntry))
    type(admin.site._registry[Group]).filter_horizontal = ()
    admin.site.unregister(User)
    admin.site.register(User, Users)
    for model, page in list(admin.site._registry.items()):
        if not isinstance(page, AuditedAdmin):
            admin.site.unregister(model)
            admin.site.register(model, type(type(page).__name__, (AuditedAdmin, type(page)), {}))
    rest = {*register_rest(), *OTHERS, LogEntry}
    # Django's plural of "status" is "statuss".
    for model in admin.site._registry:
        if str(model._meta.verbose_name_plural).endswith("ss"):
            model._meta.verbose_name_plural = f"{model._meta.verbose_name}es"
    admin.site.get_app_list = _grouped(admin.site.get_app_list, rest)  # type: ignore[method-assign]
    admin.site.site_header = admin.site.site_title = "Failsoft administration"
    admin.site.index_title = "Data"
    has_choices = attrgetter("flatchoices")
    admin.FieldListFilter.register(has_choices, SentenceFilter, take_priority=True)
    admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]

"""Django's admin behind the sign-in of the product, with all its models."""

from typing import Any

from allauth.account.decorators import secure_admin_login
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialApp, SocialToken
from allauth.usersessions.models import UserSession
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.db.models import Field

from diagnostics.accounts.administration import SentenceFilter, read_only, register_rest

# Their packages register them with secrets; here they are read-only without.
OTHERS = (Authenticator, SocialApp, SocialToken, UserSession)


def _has_choices(field: "Field[Any, Any]") -> bool:
    return bool(field.flatchoices)


def prepare_administration() -> None:
    """Register models without an admin page, and use the sign-in of the product."""
    for model in OTHERS:
        if admin.site.is_registered(model):
            admin.site.unregister(model)
        admin.site.register(model, read_only(model))
    if not admin.site.is_registered(LogEntry):
        admin.site.register(LogEntry, read_only(LogEntry))
    register_rest()
    admin.site.site_header = admin.site.site_title = "Failsoft administration"
    admin.site.index_title = "Data"
    admin.FieldListFilter.register(_has_choices, SentenceFilter, take_priority=True)
    admin.site.login = secure_admin_login(admin.site.login)  # type: ignore[method-assign]

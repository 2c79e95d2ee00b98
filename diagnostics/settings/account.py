"""The user's account: name, zone, theme, second factors, sessions, sign-ins."""

from allauth.account.adapter import get_adapter
from allauth.account.internal.flows.reauthentication import raise_if_reauthentication_required
from allauth.account.models import EmailAddress
from allauth.core.exceptions import ReauthenticationRequired
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import logout
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_POST

from diagnostics.accounts.audit_log import note
from diagnostics.accounts.models import AuditEntry, Profile
from diagnostics.accounts.profiles import NOTICE_DISMISSED, profile_of, remember
from diagnostics.settings.forms import AccountForm, ProfileForm
from diagnostics.web.pages import (
    ConsoleRequest,
    member_action,
    member_form,
    own_page,
    respond,
    user_of,
)


@require_POST
@login_required
def theme(request: HttpRequest) -> HttpResponse:
    chosen = request.POST.get("theme", "")
    if chosen not in Profile.Theme.values or not isinstance(request.user, User):
        raise Http404
    profile = profile_of(request.user)
    profile.theme = chosen
    profile.save()
    remember(request.session, profile)
    return _back(request)


@require_POST
@login_required
def dismiss_notice(request: HttpRequest) -> HttpResponse:
    """Hide the notice about local mode until the next sign-in."""
    request.session[NOTICE_DISMISSED] = True
    return _back(request)


def _back(request: HttpRequest) -> HttpResponse:
    return redirect(own_page(request, request.POST.get("next", ""), "/"))


SIGN_INS_SHOWN = 20
UNSAVED = "Nothing was saved yet. Confirm your password, then change the address again."


@member_form
def account(request: ConsoleRequest) -> HttpResponse:
    user = user_of(request)
    posted = request.method == "POST"
    form = AccountForm(request.POST if posted else None, instance=user)
    profile = profile_of(user)
    profile_form = ProfileForm(request.POST if posted else None, instance=profile)
    if posted and form.is_valid() and profile_form.is_valid():
        if "email" in form.changed_data and user.has_usable_password():
            # The address can be used to reset the password.
            try:
                raise_if_reauthentication_required(request, app="")
            except ReauthenticationRequired:
                messages.warning(request, UNSAVED)
                raise
        _save(request, form, profile_form)
        return redirect("account")
    factors = Authenticator.objects.filter(user=user)
    sessions = UserSession.objects.filter(user=user).order_by("-last_seen_at")
    unexpired = Session.objects.filter(expire_date__gt=timezone.now())
    open_keys = unexpired.values_list("session_key", flat=True)
    context = {
        "form": form,
        "look": profile_form,
        "factors": {str(factor.type): factor.wrap() for factor in factors},
        "keys": factors.filter(type=Authenticator.Type.WEBAUTHN).count(),
        "require_mfa": settings.FAILSOFT_REQUIRE_MFA,
        "sessions": list(sessions.filter(session_key__in=open_keys)[:SIGN_INS_SHOWN]),
        "current": request.session.session_key,
        "sign_ins": AuditEntry.objects.filter(
            chain=0, actor_id=user.pk, action="sign_in.succeeded"
        ).order_by("-number")[:SIGN_INS_SHOWN],
        "section": "account",
    }
    return respond(request, "console/account", context, "Account")


@member_action
def sign_out_everywhere(request: ConsoleRequest) -> HttpResponse:
    """End every session of the user, including this one."""
    user = user_of(request)
    with transaction.atomic():
        note(None, user, "sign_in.ended_everywhere", user.get_username())
        for session in UserSession.objects.filter(user=user):
            session.end()
    logout(request)
    get_adapter().add_message(request, messages.SUCCESS, message="Signed out of all sessions.")
    return redirect("account_login")


def _save(request: ConsoleRequest, form: AccountForm, profile_form: ProfileForm) -> None:
    changed = [*form.changed_data, *profile_form.changed_data]
    with transaction.atomic():
        form.save()
        if "email" in form.changed_data:
            # Until the new one is confirmed, single sign-on finds nobody.
            EmailAddress.objects.filter(user=user_of(request)).delete()
        profile = profile_form.save()
        if changed:
            user = user_of(request)
            details = {"changed": ", ".join(changed)}
            note(None, user, "account.changed", user.get_username(), dict(details))
    remember(request.session, profile)
    messages.success(request, "Saved.")

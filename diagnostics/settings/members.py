"""Members and their roles, and open invitations."""

from smtplib import SMTPException

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from diagnostics.accounts import invitations
from diagnostics.accounts.models import Invitation, Membership
from diagnostics.outbound.mail import compose, unsent_words
from diagnostics.settings.forms import InviteForm, RoleForm
from diagnostics.settings.frame import (
    keep_once,
    require_proof,
    settings_action,
    settings_form,
    show,
    take_once,
    unkept,
)
from diagnostics.web.pages import CHOSEN, ConsoleRequest, user_of

MOST_MEMBERS = 200
PAGE = "settings_members"
EXPIRED = {
    "title": "Invitation expired",
    "words": "It was used or revoked, or is older than a week. "
    "Ask a project administrator for a new one.",
}
NOT_SENT = "The mail could not be sent. Copy the link below and send it yourself."


@settings_form
def members(request: ConsoleRequest) -> HttpResponse:
    form = InviteForm(request.POST or None)
    if request.method == "POST":
        require_proof(request)
        if form.is_valid():
            return keep_once(request, PAGE, {"link": _invite(request, form)})
    link = take_once(request, PAGE).get("link", "")
    memberships = Membership.objects.filter(project=request.project).select_related("user")
    context = {
        "form": form,
        "link": link,
        "days": invitations.VALID_FOR.days,
        "members": memberships.order_by("user__username")[:MOST_MEMBERS],
        "invitations": invitations.open_invitations(request.project)[:MOST_MEMBERS],
        "roles": Membership.Role.choices,
        "me": request.user.pk,
    }
    response = show(request, "members", context, "Members")
    return unkept(response) if link else response


@settings_action
def change_member(request: ConsoleRequest, identity: int) -> HttpResponse:
    require_proof(request)
    member, form = _member(request, identity), RoleForm(request.POST)
    if form.is_valid():
        try:
            invitations.change_role(member, form.cleaned_data["role"], user_of(request))
            messages.success(request, f"{member.user} is now {member.role}.")
        except invitations.LastAdminError as error:
            messages.error(request, str(error))
    return redirect(PAGE)


@settings_action
def remove_member(request: ConsoleRequest, identity: int) -> HttpResponse:
    require_proof(request)
    member = _member(request, identity)
    try:
        invitations.remove(member, user_of(request))
        messages.success(request, f"{member.user} is no longer a member.")
    except invitations.LastAdminError as error:
        messages.error(request, str(error))
    return redirect(PAGE)


@settings_action
def revoke_invitation(request: ConsoleRequest, identity: int) -> HttpResponse:
    require_proof(request)
    row = get_object_or_404(Invitation, project=request.project, pk=identity)
    if invitations.revoke(row, user_of(request)):
        messages.success(request, "The invitation is revoked.")
    else:
        messages.info(request, "Nothing revoked: the invitation was used or revoked before.")
    return redirect(PAGE)


def _member(request: ConsoleRequest, identity: int) -> Membership:
    memberships = Membership.objects.select_related("user", "project")
    return get_object_or_404(memberships, project=request.project, pk=identity)


def _invite(request: ConsoleRequest, form: InviteForm) -> str:
    """Create an invitation, mail it if there is an address, and return its link."""
    email, role = form.cleaned_data["email"], form.cleaned_data["role"]
    _, token = invitations.invite(request.project, user_of(request), role, email)
    link = f"{settings.FAILSOFT_BASE_URL}{reverse('invitation', args=[token])}"
    if email:
        context = {"project": request.project, "role": role, "link": link}
        context |= {"by": user_of(request), "days": invitations.VALID_FOR.days}
        mail = compose(f"Join {request.project.name} in Failsoft", "invitation", context, [email])
        try:
            mail.send()
            messages.success(request, unsent_words() or f"The invitation was sent to {email}.")
        except (SMTPException, OSError):
            messages.error(request, NOT_SENT)
    return link


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def invitation(request: HttpRequest, token: str) -> HttpResponse:
    """Show an invitation; a user who is signed in accepts it by POST."""
    pending = invitations.find_invitation(token)
    if pending is None:
        return render(request, "notice.html", EXPIRED, status=404)
    request.session[invitations.IN_SESSION] = token
    user = request.user
    if request.method != "POST" or not user.is_authenticated:
        return render(request, "settings/invitation.html", {"invitation": pending})
    del request.session[invitations.IN_SESSION]
    if not invitations.accept(pending, user):
        return render(request, "notice.html", EXPIRED, status=404)
    request.session[CHOSEN] = pending.project.slug
    messages.success(request, f"You joined {pending.project.name}.")
    return redirect("now")

"""Members of a project and their invitation links."""

import hashlib
import secrets
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet

from diagnostics import clock
from diagnostics.accounts.audit_log import note
from diagnostics.accounts.models import Invitation, Membership, Project

TOKEN_BYTES = 24


def hash_token(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()


VALID_FOR = timedelta(days=7)
# Session key of the token of an invitation link.
IN_SESSION = "invitation"
RANK = {"viewer": 0, "operator": 1, "admin": 2}


class LastAdminError(Exception):
    """A project keeps at least one administrator: make somebody else one first."""

    def __init__(self) -> None:
        super().__init__(LastAdminError.__doc__)


def invite(project: Project, by: User, role: str, email: str = "") -> tuple[Invitation, str]:
    """Create an invitation; its token is returned only now."""
    token = secrets.token_urlsafe(TOKEN_BYTES)
    with transaction.atomic():
        invitation = Invitation.objects.create(
            project=project,
            role=role,
            email=email,
            token_hash=hash_token(token),
            created_by=by,
            expires_at=clock.now() + VALID_FOR,
        )
        note(project.pk, by, "member.invited", email or "by link", {"role": role})
    return invitation, token


def _open(**conditions: object) -> QuerySet[Invitation]:
    """Return the invitations that count, as long as their makers may still invite."""
    makers = Membership.objects.filter(
        project=OuterRef("project"),
        user=OuterRef("created_by"),
        role=Membership.Role.ADMIN,
        user__is_active=True,
    )
    unused = Invitation.objects.filter(used_at=None, revoked_at=None)
    return unused.filter(Exists(makers), expires_at__gt=clock.now(), **conditions)


def open_invitations(project: Project) -> QuerySet[Invitation]:
    return _open(project=project).select_related("created_by").order_by("-created_at")


def find_invitation(token: str) -> Invitation | None:
    return _open(token_hash=hash_token(token)).select_related("project").first()


def invitation_in(session: Mapping[str, object]) -> Invitation | None:
    token = session.get(IN_SESSION)
    return find_invitation(token) if isinstance(token, str) else None


def accept(invitation: Invitation, user: User) -> bool:
    """Make the user a member, never with a lower role; False if the invitation is not open."""
    with transaction.atomic():
        if _open(pk=invitation.pk).update(used_at=clock.now(), used_by=user) != 1:
            return False
        member, is_new = Membership.objects.get_or_create(
            project=invitation.project, user=user, defaults={"role": invitation.role}
        )
        if not is_new and RANK[invitation.role] > RANK[member.role]:
            member.role = invitation.role
            member.save(update_fields=["role"])
        details = {"role": member.role, "invited_by": str(invitation.created_by or "")}
        note(invitation.project_id, user, "member.joined", user.get_username(), details)
    return True


def revoke(invitation: Invitation, by: User) -> bool:
    """Revoke an invitation; False if it is not open."""
    with transaction.atomic():
        open_rows = Invitation.objects.filter(pk=invitation.pk, used_at=None, revoked_at=None)
        is_closed = open_rows.update(revoked_at=clock.now()) == 1
        if is_closed:
            target = invitation.email or "by link"
            note(invitation.project_id, by, "invitation.revoked", target)
    return is_closed


def change_role(membership: Membership, role: str, by: User) -> None:
    """Change a member's role; LastAdminError if no administrator would remain."""
    with transaction.atomic():
        if not _lock(membership) or membership.role == role:
            return
        before = membership.role
        if before == Membership.Role.ADMIN:
            _keep_an_administrator(membership)
        membership.role = role
        membership.save(update_fields=["role"])
        details = {"from": before, "to": role}
        note(membership.project_id, by, "member.changed", str(membership.user), details)


def remove(membership: Membership, by: User) -> None:
    """Remove a member from the project; LastAdminError if no administrator would remain."""
    with transaction.atomic():
        if not _lock(membership):
            return
        if membership.role == Membership.Role.ADMIN:
            _keep_an_administrator(membership)
        details = {"role": membership.role}
        note(membership.project_id, by, "member.removed", str(membership.user), details)
        membership.delete()


def _lock(membership: Membership) -> bool:
    """Serialise changes of one project's members; False if this one is removed by now."""
    Project.objects.filter(pk=membership.project_id).update(name=F("name"))
    with suppress(Membership.DoesNotExist):
        membership.refresh_from_db()
        return True
    return False


def _keep_an_administrator(membership: Membership) -> None:
    others = Membership.objects.filter(
        project_id=membership.project_id, role=Membership.Role.ADMIN, user__is_active=True
    )
    if not others.exclude(pk=membership.pk).exists():
        raise LastAdminError

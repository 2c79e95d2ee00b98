"""Members of a project and the links that make them: once, in time, never without an admin."""

import hashlib
import secrets
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from datetime import timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, QuerySet

from diagnostics import clock
from diagnostics.accounts.audit_log import note
from diagnostics.accounts.models import Invitation, Membership, Project

TOKEN_BYTES = 24


def write_token(random: bytes) -> str:
    """Write random bytes as the last part of a link."""
    return urlsafe_b64encode(random).decode().rstrip("=")


def hash_token(token: str) -> bytes:
    """Return the SHA-256 under which a token is found."""
    return hashlib.sha256(token.encode()).digest()


VALID_FOR = timedelta(days=7)
# Where a session keeps the link that brought its reader here.
IN_SESSION = "invitation"
RANK = {"viewer": 0, "operator": 1, "admin": 2}


class LastAdminError(Exception):
    """A project keeps at least one administrator: make somebody else one first."""

    def __init__(self) -> None:
        super().__init__(LastAdminError.__doc__)


def invite(project: Project, by: User, role: str, email: str = "") -> tuple[Invitation, str]:
    """Make an invitation; its token is given now and never again."""
    token = write_token(secrets.token_bytes(TOKEN_BYTES))
    with transaction.atomic():
        made = Invitation.objects.create(
            project=project,
            role=role,
            email=email,
            token_hash=hash_token(token),
            created_by=by,
            expires_at=clock.now() + VALID_FOR,
        )
        note(project.pk, by, "member.invited", email or "by link", {"role": role})
    return made, token


def _open(**wanted: object) -> QuerySet[Invitation]:
    kept = Invitation.objects.filter(used_at=None, revoked_at=None, expires_at__gt=clock.now())
    return kept.filter(**wanted)


def open_invitations(project: Project) -> QuerySet[Invitation]:
    """Return the invitations that somebody may still accept, newest first."""
    return _open(project=project).select_related("created_by").order_by("-created_at")


def find_invitation(token: str) -> Invitation | None:
    """Find the open invitation of a token."""
    return _open(token_hash=hash_token(token)).select_related("project").first()


def invitation_in(session: Mapping[str, object]) -> Invitation | None:
    """Find the open invitation that a session holds."""
    token = session.get(IN_SESSION)
    return find_invitation(token) if isinstance(token, str) else None


def accept(invitation: Invitation, user: User) -> bool:
    """Make the person a member; False when somebody else was faster. Never lowers a role."""
    with transaction.atomic():
        if _open(pk=invitation.pk).update(used_at=clock.now(), used_by=user) != 1:
            return False
        member, is_new = Membership.objects.get_or_create(
            project=invitation.project, user=user, defaults={"role": invitation.role}
        )
        if not is_new and RANK[invitation.role] > RANK[member.role]:
            member.role = invitation.role
            member.save(update_fields=["role"])
        told = {"role": member.role, "invited_by": invitation.created_by_id}
        note(invitation.project_id, user, "member.joined", user.get_username(), told)
    return True


def revoke(invitation: Invitation, by: User) -> bool:
    """Close an open invitation."""
    with transaction.atomic():
        mine = Invitation.objects.filter(pk=invitation.pk, used_at=None, revoked_at=None)
        is_closed = mine.update(revoked_at=clock.now()) == 1
        if is_closed:
            target = invitation.email or "by link"
            note(invitation.project_id, by, "invitation.revoked", target)
    return is_closed


def change_role(membership: Membership, role: str, by: User) -> None:
    """Return a member another role; LastAdminError when nobody would administer."""
    with transaction.atomic():
        _lock(membership.project_id)
        membership.refresh_from_db()
        before = membership.role
        if before == role:
            return
        if before == Membership.Role.ADMIN:
            _keep_an_admin(membership)
        membership.role = role
        membership.save(update_fields=["role"])
        told = {"from": before, "to": role}
        note(membership.project_id, by, "member.changed", str(membership.user), told)


def remove(membership: Membership, by: User) -> None:
    """Take a member out of the project; LastAdminError when nobody would administer."""
    with transaction.atomic():
        _lock(membership.project_id)
        membership.refresh_from_db()
        if membership.role == Membership.Role.ADMIN:
            _keep_an_admin(membership)
        told = {"role": membership.role}
        note(membership.project_id, by, "member.removed", str(membership.user), told)
        membership.delete()


def _lock(project_id: int) -> None:
    """Let changes of one project's members wait for each other."""
    Project.objects.select_for_update().filter(pk=project_id).update(name=F("name"))


def _keep_an_admin(membership: Membership) -> None:
    others = Membership.objects.filter(
        project_id=membership.project_id, role=Membership.Role.ADMIN, user__is_active=True
    )
    if not others.exclude(pk=membership.pk).exists():
        raise LastAdminError

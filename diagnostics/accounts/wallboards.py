"""Addresses of wallboards: signed, valid until an administrator revokes them."""

from django.conf import settings
from django.contrib.auth.models import User
from django.core.signing import BadSignature, Signer
from django.db import transaction
from django.urls import reverse

from diagnostics import clock
from diagnostics.accounts.audit_log import note
from diagnostics.accounts.models import Project, Wallboard


def create_wallboard(project: Project, by: User, name: str) -> Wallboard:
    """Create a wallboard of a project."""
    with transaction.atomic():
        wallboard = Wallboard.objects.create(project=project, name=name, created_by=by)
        note(project.pk, by, "wallboard.created", wallboard.name)
    return wallboard


def revoke_wallboard(wallboard: Wallboard, by: User) -> None:
    """Make the address of a wallboard invalid."""
    with transaction.atomic():
        open_ones = Wallboard.objects.filter(pk=wallboard.pk, revoked_at=None)
        if open_ones.update(revoked_at=clock.now()):
            note(wallboard.project_id, by, "wallboard.revoked", wallboard.name)


def address_of(wallboard: Wallboard) -> str:
    """Return the full address of a wallboard."""
    path = reverse("wallboard", args=[_signer().sign(str(wallboard.pk))])
    return f"{settings.FAILSOFT_BASE_URL}{path}"


def find_wallboard(token: str) -> Wallboard | None:
    """Return the wallboard of an address; None for a forged or revoked one."""
    try:
        number = int(_signer().unsign(token))
    except (BadSignature, ValueError):
        return None
    valid = Wallboard.objects.filter(pk=number, revoked_at=None)
    return valid.select_related("project").first()


def _signer() -> Signer:
    # Settings are read at each call: tests change the key.
    return Signer(salt="failsoft.wallboard", sep=".")

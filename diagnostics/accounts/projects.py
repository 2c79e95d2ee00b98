"""Projects and their keys."""

import secrets
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from django.conf import settings
from django.db import transaction

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope, hash_secret
from diagnostics.accounts.audit_log import Actor, note
from diagnostics.accounts.authentication import forget
from diagnostics.accounts.models import ApiKey, Project
from failsoft.json_values import JSON

DEFAULT_SLUG = "default"
LOCAL_KEY_FILE = "api-key"
LOCAL_KEY_NAME = "this machine"
NAMED_KEY = "$FAILSOFT_API_KEY"


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A new key; `text` can be shown only now."""

    text: str
    row: ApiKey


def issue_key(
    project: Project, name: str, scopes: Sequence[Scope], expires_at: datetime | None = None
) -> IssuedKey:
    """Create a key of a project; several may be live during a rotation."""
    key_id, secret = secrets.token_hex(6), secrets.token_urlsafe(32)
    row = ApiKey.objects.create(
        key_id=key_id,
        project=project,
        name=name,
        secret_hash=hash_secret(secret),
        scopes=sorted({scope.value for scope in scopes}),
        expires_at=expires_at,
    )
    return IssuedKey(f"fs_{key_id}_{secret}", row)


def create_key(
    project: Project,
    by: Actor,
    name: str,
    scopes: Sequence[Scope],
    expires_at: datetime | None = None,
) -> IssuedKey:
    """Create a key as `issue_key` does, with an entry in the audit log."""
    with transaction.atomic():
        issued = issue_key(project, name, scopes, expires_at)
        details: dict[str, JSON] = {
            "key_id": issued.row.key_id,
            "scopes": [scope.value for scope in scopes],
        }
        note(project.pk, by, "key.created", name, details)
    return issued


def revoke_key(key: ApiKey, by: Actor) -> bool:
    """Revoke a key forever; False if it was revoked already."""
    live = ApiKey.objects.filter(pk=key.pk, revoked_at__isnull=True)
    with transaction.atomic():
        is_closed = live.update(revoked_at=clock.now()) == 1
        if is_closed:
            note(key.project_id, by, "key.revoked", key.name, {"key_id": key.key_id})
    forget(key.key_id)
    return is_closed


def ensure_default_project() -> Project:
    """Return the project that a fresh installation starts with."""
    project, _ = Project.objects.get_or_create(slug=DEFAULT_SLUG, defaults={"name": "Default"})
    return project


def place_of_key(project: Project | None) -> str:
    """Return the placeholder of a key in a snippet: on one machine the default project's file."""
    is_local = settings.FAILSOFT_LOCAL_STACK and project and project.slug == DEFAULT_SLUG
    if not is_local:
        return NAMED_KEY
    path = Path(settings.FAILSOFT_DATA_DIR).absolute() / LOCAL_KEY_FILE
    return f"$(cat {shlex.quote(str(path))})"

"""Projects and their keys."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from diagnostics import clock
from diagnostics.core.api_keys import ID_BYTES, SECRET_BYTES, Scope, mint_key
from diagnostics.key_cache import forget
from diagnostics.models import ApiKey, Project

DEFAULT_SLUG = "default"


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A key that was just made; `text` can be shown now and never again."""

    text: str
    row: ApiKey


def issue_key(
    project: Project,
    name: str,
    scopes: Sequence[Scope],
    expires_at: datetime | None = None,
) -> IssuedKey:
    """Make a key of a project; several live ones may overlap while they are changed."""
    minted = mint_key(secrets.token_bytes(ID_BYTES + SECRET_BYTES))
    row = ApiKey.objects.create(
        key_id=minted.key_id,
        project=project,
        name=name,
        secret_hash=minted.secret_hash,
        scopes=sorted({scope.value for scope in scopes}),
        expires_at=expires_at,
    )
    return IssuedKey(minted.text, row)


def revoke_key(key: ApiKey) -> bool:
    """Close a key for good; False when it was closed already."""
    live = ApiKey.objects.filter(pk=key.pk, revoked_at__isnull=True)
    is_closed = live.update(revoked_at=clock.now()) == 1
    forget(key.key_id)
    return is_closed


def ensure_default_project() -> Project:
    """Give the project that a fresh installation starts with."""
    project, _ = Project.objects.get_or_create(
        slug=DEFAULT_SLUG, defaults={"name": "Default"}
    )
    return project

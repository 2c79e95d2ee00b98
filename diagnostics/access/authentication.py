"""API keys in the Authorization header: who asks, for which project, and may they."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from django.db.models import Q
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from diagnostics.access.key_cache import KnownKey, look_up
from diagnostics.core.api_keys import (
    Scope,
    allows,
    is_right_secret,
    parse_key,
)
from diagnostics.models import ApiKey, Project
from diagnostics.redaction.redacting import register_passing_secret

SCHEME = "Bearer"
# One text for every reason: nobody learns which ids exist.
REFUSAL = "A valid API key is required: Authorization: Bearer fs_<id>_<secret>"
LAST_USED_PRECISION = timedelta(minutes=1)


class KeyHolder:
    """Whoever holds a key: known, but no person."""

    is_authenticated = True
    is_anonymous = False
    pk = None

    def __init__(self, key: ApiKey) -> None:
        """Remember the key."""
        self.key = key


class ApiKeyAuthentication(BaseAuthentication):
    """Reads `Authorization: Bearer fs_<id>_<secret>`; never a key in an address (S1-S4).

    Gives `request.auth` (the ApiKey, with its project) and `request.project`.
    """

    def authenticate(self, request: Request) -> tuple[KeyHolder, ApiKey]:
        """Give the holder and the key; every other request gets one and the same 401."""
        key = find_key(request.headers.get("Authorization", ""))
        if key is None:
            raise AuthenticationFailed(REFUSAL)
        request.project = key.project  # type: ignore[attr-defined] # ours to add
        return KeyHolder(key), key

    def authenticate_header(self, request: Request) -> str:
        """Name the scheme, so that the answer is 401 and not 403."""
        return SCHEME


@dataclass(frozen=True, slots=True)
class Seat:
    """A member's place in a project: stands where a key would."""

    project: Project


class MemberAuthentication(BaseAuthentication):
    """Takes the person and the project that `member_view` has let in; for reads only."""

    def authenticate(self, request: Request) -> tuple[object, Seat]:
        """Give the person and their seat."""
        asked = request._request
        return asked.user, Seat(asked.project)  # type: ignore[attr-defined] # member_view's


class HasScope(BasePermission):
    """Asks for the scope that the view names for the method in `required_scopes`."""

    message = "The key lacks the scope that this request needs."

    def has_permission(self, request: Request, view: "Scoped") -> bool:  # type: ignore[override] # views of ours
        """Say whether the key may; a method without a scope of its own needs admin."""
        key = request.auth
        wanted = view.required_scopes.get(str(request.method), Scope.ADMIN)
        return isinstance(key, ApiKey) and allows(frozenset(key.scopes), wanted)


class Scoped(Protocol):
    """A view that says which scope each method needs."""

    required_scopes: dict[str, Scope]


def key_of(request: Request) -> ApiKey:
    """Give the key of an authenticated request."""
    key: ApiKey = request.auth  # type: ignore[assignment] # set by authenticate
    return key


def project_of(request: Request) -> Project:
    """Give the project that the key of an authenticated request decides."""
    holder: ApiKey | Seat = request.auth  # type: ignore[assignment] # set by authenticate
    return holder.project


def find_key(header: str) -> ApiKey | None:
    """Find the live key that an Authorization header presents, or None.

    An unknown id costs the same comparison as a wrong secret.
    """
    scheme, _, text = header.partition(" ")
    presented = parse_key(text.strip()) if scheme.lower() == SCHEME.lower() else None
    if presented is None:
        return None
    known, was_asked = look_up(presented.key_id)
    stored = bytes(known.key.secret_hash) if known else None
    if not is_right_secret(presented.secret, stored) or known is None:
        return None
    if not known.is_live:
        return None
    if was_asked:
        _note_use(known)
    register_passing_secret(presented.secret, "failsoft_key")
    return known.key


def _note_use(known: KnownKey) -> None:
    """Write the time of use at most once a minute: a busy key is no hot row."""
    key, stale = known.key, known.asked_at - LAST_USED_PRECISION
    if key.last_used_at is None or key.last_used_at < stale:
        unused = Q(last_used_at__isnull=True) | Q(last_used_at__lt=stale)
        ApiKey.objects.filter(unused, pk=key.pk).update(last_used_at=known.asked_at)

"""API keys in the Authorization header: authentication, project and scopes."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from time import monotonic
from typing import Any, ClassVar, NoReturn
from urllib.parse import unquote

from django.db.models import Q
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, MethodNotAllowed, ValidationError
from rest_framework.negotiation import BaseContentNegotiation, DefaultContentNegotiation
from rest_framework.permissions import BasePermission
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.views import APIView

from diagnostics.accounts.api_keys import Scope, allows, is_right_secret, parse_key
from diagnostics.accounts.models import ApiKey, Project
from diagnostics.clock import DatabaseNow
from diagnostics.redaction.redactor import register_passing_secret
from diagnostics.redaction.rules import texts_of, work_for

KEEP_SECONDS = 4.0
MOST_KEYS = 10_000


@dataclass(frozen=True, slots=True)
class KnownKey:
    key: ApiKey
    database_time: datetime
    read_at: float

    @property
    def is_fresh(self) -> bool:
        return monotonic() - self.read_at < KEEP_SECONDS

    @property
    def now(self) -> datetime:
        """The database's time, estimated without a query."""
        return self.database_time + timedelta(seconds=monotonic() - self.read_at)

    @property
    def is_live(self) -> bool:
        ends = self.key.expires_at
        return self.key.revoked_at is None and (ends is None or ends > self.now)


_known: dict[str, KnownKey] = {}


class KeyNotCachedError(Exception):
    """the key has to be read from the database"""


def look_up(key_id: str, *, reads: bool = True) -> tuple[KnownKey | None, bool]:
    """Return the key with this id, and whether it was read from the database.

    Without `reads`, raises KeyNotCachedError instead of reading it.
    """
    cached = _known.get(key_id)
    if cached is not None and cached.is_fresh:
        return cached, False
    if not reads:
        raise KeyNotCachedError(KeyNotCachedError.__doc__)
    keys = ApiKey.objects.select_related("project", "project__quota")
    key = keys.annotate(database_time=DatabaseNow()).filter(key_id=key_id).first()
    if key is None:
        _known.pop(key_id, None)
        return None, True
    if len(_known) >= MOST_KEYS:
        _known.clear()
    # Another thread may forget it meanwhile.
    fresh = _known[key_id] = KnownKey(key, key.database_time, monotonic())
    return fresh, True


def forget(key_id: str) -> None:
    """Drop a key from the cache: it was changed."""
    _known.pop(key_id, None)


def forget_all() -> None:
    """Drop every key from the cache: a project was changed."""
    _known.clear()


SCHEME = "Bearer"
# One text for every reason, so that it does not reveal which ids exist.
REFUSAL = "A valid API key is required: Authorization: Bearer fs_<id>_<secret>"
# In the ASGI scope: why the web server refuses a request whose body it therefore has not read.
REFUSED_BEFORE_BODY = "failsoft.refusal"
LAST_USED_PRECISION = timedelta(minutes=1)


class KeyHolder:
    is_authenticated = True
    is_anonymous = False
    pk = None

    def __init__(self, key: ApiKey) -> None:
        self.key = key


class ApiKeyAuthentication(BaseAuthentication):
    """Reads `Authorization: Bearer fs_<id>_<secret>`; never a key in a URL.

    Sets `request.auth` (the ApiKey, with its project) and `request.project`.
    """

    def authenticate(self, request: Request) -> tuple[KeyHolder, ApiKey]:
        """Return the holder and the key; every other request gets the same 401."""
        refusal = getattr(request._request, "scope", {}).get(REFUSED_BEFORE_BODY)
        if refusal is not None:
            raise refusal
        key = find_key(request.headers.get("Authorization", ""))
        if key is None:
            raise AuthenticationFailed(REFUSAL)
        request.project = key.project  # type: ignore[attr-defined] # ours to add
        return KeyHolder(key), key

    def authenticate_header(self, request: Request) -> str:
        """Return the scheme, so that the response is 401 and not 403."""
        return SCHEME


@dataclass(frozen=True, slots=True)
class Seat:
    """A member's project, in place of a key."""

    project: Project


class MemberAuthentication(BaseAuthentication):
    """Reads the user and the project that `member_view` admitted; for reads only."""

    def authenticate(self, request: Request) -> tuple[object, Seat]:
        http_request = request._request
        return http_request.user, Seat(http_request.project)  # type: ignore[attr-defined] # member_view's


class HasScope(BasePermission):
    """Requires the scope that the view's `required_scopes` has for the method."""

    def has_permission(self, request: Request, view: "KeyedView") -> bool:  # type: ignore[override] # views of ours
        """Whether the key has the scope, or none is required (None).

        OPTIONS needs read, a method that `required_scopes` lacks admin.
        A method that the view does not have is left to its 405.
        """
        if not hasattr(view, str(request.method).lower()):
            return True
        key = request.auth
        scopes: dict[str, Scope | None] = {"OPTIONS": Scope.READ, **view.required_scopes}
        required = scopes.get(str(request.method), Scope.ADMIN)
        granted = key.scopes if isinstance(key, ApiKey) else []
        has = ", ".join(granted) or "none"
        self.message = f"This needs the scope {required}; the key has {has}."
        return required is None or allows(frozenset(granted), required)


class ByFormat(DefaultContentNegotiation):
    """Takes `format` instead of Accept: a browser that follows a link accepts text/html."""

    def select_renderer(
        self, request: Request, renderers: Iterable[BaseRenderer], format_suffix: str | None = None
    ) -> tuple[BaseRenderer, str]:
        name = request.query_params.get("format")
        if not name:
            chosen: tuple[BaseRenderer, str] = super().select_renderer(
                request, renderers, format_suffix
            )
            return chosen
        by_name = {renderer.format: renderer for renderer in renderers}
        if name not in by_name:
            raise ValidationError({"format": f"one of {', '.join(by_name)}"})
        return by_name[name], str(by_name[name].media_type)


class KeyedView(APIView):
    """An endpoint that requires a key with the scope of the method.

    What it stores is masked by the rules of the key's project too.
    """

    authentication_classes = (ApiKeyAuthentication,)
    permission_classes = (HasScope,)
    content_negotiation_class: type[BaseContentNegotiation] = ByFormat
    required_scopes: ClassVar[Mapping[str, Scope | None]] = {}

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        with texts_of(None):
            return super().dispatch(request, *args, **kwargs)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        work_for(project_of(request).pk)

    def http_method_not_allowed(self, request: HttpRequest, *_: object, **__: object) -> NoReturn:
        allowed = ", ".join(sorted({*self.allowed_methods} - {"HEAD", "OPTIONS"}))
        message = f"{request.method} is not allowed here; allowed: {allowed}."
        raise MethodNotAllowed(str(request.method), message)


def key_of(request: Request) -> ApiKey:
    key: ApiKey = request.auth  # type: ignore[assignment] # set by authenticate
    return key


def project_of(request: Request) -> Project:
    holder: ApiKey | Seat = request.auth  # type: ignore[assignment] # set by authenticate
    return holder.project


def find_key(header: str, *, reads: bool = True) -> ApiKey | None:
    """Return the live key of an Authorization header, or None.

    An unknown id costs the same comparison as a wrong secret. Without `reads`, raises
    KeyNotCachedError where the database would have to be queried.
    """
    # OTLP's environment variables percent-encode headers; some exporters send them undecoded.
    scheme, _, text = unquote(header).partition(" ")
    presented = parse_key(text.strip()) if scheme.lower() == SCHEME.lower() else None
    if presented is None:
        return None
    key_id, secret = presented
    known, was_read = look_up(key_id, reads=reads)
    stored_hash = bytes(known.key.secret_hash) if known else None
    if not is_right_secret(secret, stored_hash) or known is None:
        return None
    if not known.is_live:
        return None
    if was_read:
        # Write the time of use at most once a minute, so that a busy key is not a hot row.
        key, stale = known.key, known.database_time - LAST_USED_PRECISION
        if key.last_used_at is None or key.last_used_at < stale:
            unused = Q(last_used_at__isnull=True) | Q(last_used_at__lt=stale)
            ApiKey.objects.filter(unused, pk=key.pk).update(last_used_at=known.database_time)
    register_passing_secret(secret, "failsoft_key")
    return known.key

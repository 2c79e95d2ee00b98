"""The redactor of this process, which every stored or shown text passes."""

import sys
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from contextvars import ContextVar
from threading import Lock
from typing import Any
from urllib.parse import unquote, urlsplit

import structlog
from django.apps import AppConfig
from django.conf import settings
from django.core.checks import CheckMessage, Tags, Warning, register  # noqa: A004

from failsoft.json_values import JSON, clean_text
from failsoft.redaction import FAILED, Redacted, Redactor
from failsoft.redaction.known_values import WeakSecretError, encodings
from failsoft.redaction.re2_search import OwnRules
from failsoft.redaction.rules import load_rule_set
from failsoft.redaction.secret_names import NAME_FIELDS, SECRET_MARK, is_secret_name

logger = structlog.get_logger(__name__)

MAX_DEPTH = 64
MAX_NODES = 200_000
MAX_PASSING = 50
# Numbers shorter than this cannot be a card.
CARD_FLOOR = 10**11
# Finds the own rules of the project that a request or a task works for.
OwnRulesFinder = Callable[[], OwnRules | None]
find_own_rules: ContextVar[OwnRulesFinder | None] = ContextVar("find_own_rules", default=None)
LOG_KEYS_KEPT = frozenset({"_record", "_from_structlog"})


class _Keeper:
    """The redactor, rebuilt when a value is added."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._known: dict[str, str] = {}
        self._passing: OrderedDict[str, str] = OrderedDict()
        self._lasting: Redactor | None = None
        self._redactor: Redactor | None = None

    def add(self, values: Iterable[tuple[str, str]]) -> None:
        with self._lock:
            new_values = {value: kind for value, kind in values if value not in self._known}
            if new_values:
                self._known = {**self._known, **new_values}
                self._lasting = self._redactor = None

    def add_passing(self, value: str, kind: str) -> None:
        with self._lock:
            if value in self._passing:
                self._passing.move_to_end(value)
                return
            self._passing[value] = kind
            if len(self._passing) > MAX_PASSING:
                self._passing.popitem(last=False)
            self._redactor = None

    def holds(self, value: str) -> bool:
        return value in self._known

    def redactor(self) -> Redactor:
        current = self._redactor
        if current is None:
            with self._lock:
                # A passing value is searched only if a text contains a token, so that
                # a new sender costs no new filter.
                if self._lasting is None:
                    emails = getattr(settings, "FAILSOFT_REDACT_EMAILS", False)
                    self._lasting = Redactor(
                        load_rule_set(emails=emails), self._known, is_lasting=True
                    )
                current = self._lasting.with_passing(self._passing)
                self._redactor = current
        return current


_keeper = _Keeper()
# Of registered values that are too short to be masked.
_weak_kinds: set[str] = set()


def register_secret(value: str, kind: str = "known") -> bool:
    """Mask this value in every encoding from now on; return False and warn if it is weak.

    Values under 8 characters are refused: they would mask ordinary text. `manage.py
    check` names the kinds that were.
    """
    if _keeper.holds(value):
        return True
    try:
        encodings(value)
    except WeakSecretError as error:
        logger.warning("secret_not_registered", kind=kind, reason=str(error))
        _weak_kinds.add(kind)
        return False
    _keeper.add([(value, kind)])
    return True


def register_passing_secret(value: str, kind: str) -> None:
    """Mask the secret of a request in its content; the last 50 are kept.

    There may be any number of senders, so the least recently used are dropped.
    """
    _keeper.add_passing(value, kind)


def register_settings_secrets() -> None:
    """Register the secrets in settings: keys, and the passwords in addresses."""
    database = settings.DATABASES["default"]
    broker = urlsplit(getattr(settings, "BROKER_URL", ""))
    for value, kind in (
        (settings.SECRET_KEY, "secret_key"),
        (getattr(settings, "FAILSOFT_WORKING_KEY", ""), "working_key"),
        (getattr(settings, "FAILSOFT_MODEL_KEY", ""), "model_key"),
        (database.get("PASSWORD", ""), "database_password"),
        (unquote(broker.password or ""), "broker_password"),
        (getattr(settings, "EMAIL_HOST_PASSWORD", ""), "mail_password"),
    ):
        if value:
            register_secret(value, kind)


def redact(text: str, limit: int | None = None) -> str:
    """Return a text with secrets masked, cut to `limit` bytes of UTF-8."""
    return redact_found(text, limit).text


def redact_name(text: str, limit: int | None = None) -> str:
    """Return the name of a provider, model, source, version or tool, cleaned, masked and cut.

    Known values and tokens of full length are masked; a prefix like `sk-` alone is not.
    """
    return redact_found(clean_text(text), limit, is_name=True).text


def redact_found(
    text: str, limit: int | None = None, own: OwnRules | None = None, *, is_name: bool = False
) -> Redacted:
    """Redact as `redact` does, and name the kinds found.

    `own` are a project's own rules; by default those of the project that is worked for.
    """
    try:
        find_own = find_own_rules.get()
        if own is None and find_own is not None:
            own = find_own()
        redactor = _keeper.redactor()
        if is_name:
            redactor = redactor.for_name(text)
        return (redactor.with_own(own) if own else redactor).redact(text, limit)
    except Exception as error:  # noqa: BLE001 - no redactor could be built: no text
        # Not through the logger, which calls this function.
        sys.stderr.write(f"redactor not built: {type(error).__name__}\n")
        return Redacted(FAILED, ("failed",))


class SecretTypedError(ValueError):
    """it holds what looks like a secret"""


def refuse_secret(text: str) -> str:
    """Return a text that would change its meaning if it were masked; SecretTypedError."""
    if redact(text) != text:
        raise SecretTypedError(SecretTypedError.__doc__)
    return text


def redact_json(value: object) -> JSON:
    """Return a storable JSON value with keys and texts masked, and all below a secret name.

    The value of a key such as `model` or `tool` is masked as a name.

    Bounded: beyond 64 levels or 200,000 values a marker replaces the rest. Other Python
    objects are converted to text.
    """
    return _JsonRedaction().walk(value, depth=1, secret=False)


def redact_event(
    _logger: object, _method: str, event: MutableMapping[str, Any]
) -> Mapping[str, Any]:
    """Mask a log entry: a structlog processor, to run after the exception formatter.

    Own rules are not applied: reading them may take a query, which may be logged.
    """
    before = find_own_rules.set(None)
    try:
        return {
            key: value if key in LOG_KEYS_KEPT else _redact_logged(key, value)
            for key, value in event.items()
        }
    finally:
        find_own_rules.reset(before)


class _JsonRedaction:
    def __init__(self) -> None:
        self.remaining = MAX_NODES

    def walk(self, value: object, depth: int, secret: bool) -> JSON:
        self.remaining -= 1
        if self.remaining < 0 or depth > MAX_DEPTH:
            return "[REDACTED:too_large]"
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, dict):
            return {
                redact(clean_text(str(key))): redact_name(item)
                if key in NAME_FIELDS and isinstance(item, str) and not secret
                else self.walk(item, depth + 1, secret or is_secret_name(str(key)))
                for key, item in value.items()
            }
        if isinstance(value, list | tuple | set | frozenset):
            return [self.walk(item, depth + 1, secret) for item in value]
        return SECRET_MARK if secret and value != "" else _redact_scalar(value)


def _redact_scalar(value: object) -> JSON:
    if isinstance(value, float):
        return value
    if isinstance(value, int):
        masked = redact(str(value)) if abs(value) >= CARD_FLOOR else ""
        if masked == FAILED:
            return None
        return masked if masked.startswith("[") else value
    return redact(clean_text(str(value)))


def _redact_logged(key: str, value: object) -> object:
    if isinstance(value, str) and not is_secret_name(key):
        return redact(value)
    return redact_json({key: value}).popitem()[1]  # type: ignore[union-attr] # a dict


@register(Tags.security)
def check_registered_values(
    app_configs: Sequence[AppConfig] | None, **kwargs: object
) -> list[CheckMessage]:
    """diagnostics.W001: a registered value is too short to be masked."""
    return [
        Warning(
            f"The value registered as {kind} has fewer than 8 characters and is not masked.",
            hint="Use a longer one.",
            id="diagnostics.W001",
        )
        for kind in sorted(_weak_kinds)
    ]

"""Redaction rules of projects: kept for seconds in each process, applied behind our own."""

from functools import partial
from threading import Lock
from time import monotonic

import structlog

from diagnostics.core.redaction import Redact
from diagnostics.core.redaction.own_rules import BadPatternError, OwnRule, OwnRules
from diagnostics.models import RedactionRule
from diagnostics.redaction.redacting import redact_found

logger = structlog.get_logger(__name__)

# A new rule holds in every process after so many seconds.
KEPT_SECONDS = 3.0

_lock = Lock()
_kept: dict[int, tuple[float, OwnRules | None]] = {}


def redactor_of(project_id: int) -> Redact:
    """Give the function that redacts texts of a project, by its own rules too."""
    own = own_rules_of(project_id)
    return redact_found if own is None else partial(redact_found, own=own)


def own_rules_of(project_id: int) -> OwnRules | None:
    """Give the compiled rules of a project that are switched on; None without any."""
    until, own = _kept.get(project_id, (0.0, None))
    if monotonic() >= until:
        own = _load(project_id)
        with _lock:
            _kept[project_id] = (monotonic() + KEPT_SECONDS, own)
    return own


def forget_rules() -> None:
    """Read the rules anew with the next text: in this process they have changed."""
    with _lock:
        _kept.clear()


def _load(project_id: int) -> OwnRules | None:
    rows = RedactionRule.objects.filter(project_id=project_id, enabled=True)
    rules = [
        OwnRule(kind, pattern)
        for kind, pattern in rows.order_by("pk").values_list("kind", "pattern")
    ]
    if not rules:
        return None
    good = [rule for rule in rules if _compiles(rule)]
    return OwnRules(good)


def _compiles(rule: OwnRule) -> bool:
    """Patterns are compiled before they are saved; another RE2 may think otherwise."""
    try:
        OwnRules([rule])
    except BadPatternError as error:
        logger.exception("redaction_rule_refused", kind=rule.kind, reason=str(error))
        return False
    return True

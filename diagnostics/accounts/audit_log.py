"""Writing down who changed what: one chain of entries a project, checked from end to end.

An entry's hash covers its own fields and the hash before it. The table refuses changes; who
gets past that breaks the chain, and `manage.py verify_audit` names the place.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC

import structlog
from django.contrib.auth.models import AbstractBaseUser, AnonymousUser
from django.db import connection, transaction

from diagnostics import clock
from diagnostics.accounts.models import ApiKey, AuditEntry
from diagnostics.redaction.redactor import redact, redact_json
from failsoft.json_values import JSON

logger = structlog.get_logger(__name__)

# Of advisory locks: the first number says what for, the second which chain.
LOCK_SPACE = 1_096_107_593
LOCK_NUMBERS = 2**31 - 1
INSTALLATION = 0
LONGEST_TARGET = 200
LONGEST_DETAILS = 16_384
BEGINNING = b""
BATCH = 2_000
# Beside its time.
HASHED = ("chain", "number", "actor_id", "actor", "action", "target", "details", "address")

Actor = AbstractBaseUser | AnonymousUser | ApiKey | str | None

_address: ContextVar[str | None] = ContextVar("audit_address", default=None)


@dataclass(frozen=True, slots=True)
class Break:
    """The first entry of a chain that is not as it was written."""

    chain: int
    number: int
    reason: str


@dataclass(frozen=True, slots=True)
class Head:
    """Where an unbroken chain ends; noted elsewhere, it proves that no end was cut off."""

    chain: int
    number: int
    hash: str


@contextmanager
def asked_from(address: str | None) -> Iterator[None]:
    """Note this address with every entry that is written inside."""
    token = _address.set(address)
    try:
        yield
    finally:
        _address.reset(token)


def note(
    project_id: int | None,
    actor: Actor,
    action: str,
    target: str,
    details: Mapping[str, JSON] | None = None,
) -> AuditEntry:
    """Add an entry in the caller's transaction: it is there exactly when the change is.

    `action` is a word of ours like `key.revoked`; target and details are redacted. Without a
    project the entry belongs to the installation.
    """
    chain = project_id or INSTALLATION
    actor_id, name = identity_of(actor)
    with transaction.atomic():
        number, before = _take_end(chain)
        entry = AuditEntry(
            chain=chain,
            number=number + 1,
            at=clock.now(),
            actor_id=actor_id,
            actor=redact(name, LONGEST_TARGET),
            action=action,
            target=redact(target, LONGEST_TARGET),
            details=_written(details),
            address=_address.get(),
        )
        entry.hash = hash_of(entry, before)
        entry.save(force_insert=True)
    # The log is a second place that knows where the chain stood.
    logger.info("audit_noted", chain=chain, number=entry.number, digest=entry.hash.hex())
    return entry


def hash_of(entry: AuditEntry, before: bytes) -> bytes:
    """Return the SHA-256 of the hash before and the entry's fields as canonical JSON."""
    fields = {name: getattr(entry, name) for name in HASHED}
    fields["at"] = entry.at.astimezone(UTC).isoformat(timespec="microseconds")
    return hashlib.sha256(before + _canonical(fields).encode()).digest()


def details_of(entry: AuditEntry) -> dict[str, JSON]:
    """Return the details of an entry as they were noted."""
    told: dict[str, JSON] = json.loads(entry.details)
    return told


def verify_chains(heads: Sequence[Head] = ()) -> list[Head | Break]:
    """Walk every chain; gives where each ends, or the first entry that is broken.

    `heads` were noted earlier: an entry that such an end names must still be there.
    """
    rows = AuditEntry.objects.order_by("chain").values_list("chain", flat=True)
    chains = {*rows.distinct(), *(head.chain for head in heads)}
    return [verify_chain(chain, heads) for chain in sorted(chains)]


def verify_chain(chain: int, heads: Sequence[Head] = ()) -> Head | Break:
    """Walk one chain from its beginning."""
    ends = {head.number: head.hash for head in heads if head.chain == chain}
    number, before = 0, BEGINNING
    for entry in _walk(chain):
        number += 1
        if entry.number != number:
            reason = f"it is missing: {entry.number} follows {number - 1}"
            return Break(chain, number, reason)
        kept = bytes(entry.hash)
        if kept != hash_of(entry, before):
            return Break(chain, number, "its fields, or those before it, were changed")
        if ends.pop(number, kept.hex()) != kept.hex():
            return Break(chain, number, "it is not the one that was noted")
        before = kept
    if ends:
        return Break(chain, number + 1, "the end was cut off")
    return Head(chain, number, before.hex())


def _walk(chain: int) -> Iterator[AuditEntry]:
    last = -1
    while True:
        rows = AuditEntry.objects.filter(chain=chain, number__gt=last)
        batch = list(rows.order_by("number")[:BATCH])
        yield from batch
        if len(batch) < BATCH:
            return
        last = batch[-1].number


def _take_end(chain: int) -> tuple[int, bytes]:
    """Lock the end of a chain until the transaction ends; gives its number and hash."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [LOCK_SPACE, chain % LOCK_NUMBERS])
    rows = AuditEntry.objects.filter(chain=chain).order_by("-number")
    last = rows.values_list("number", "hash").first()
    return (0, BEGINNING) if last is None else (last[0], bytes(last[1]))


def identity_of(actor: Actor) -> tuple[int | None, str]:
    """Return the user's number, if it is one, and the name; of a key never its secret half."""
    if isinstance(actor, str):
        return None, actor
    if isinstance(actor, ApiKey):
        return None, f"key {actor.name} ({actor.key_id})"
    if actor is None or not actor.is_authenticated:
        return None, "nobody"
    return actor.pk, actor.get_username()


def _written(details: Mapping[str, JSON] | None) -> str:
    text = _canonical(redact_json(dict(details or {})))
    if len(text.encode()) <= LONGEST_DETAILS:
        return text
    return _canonical({"left_out": f"{len(text)} characters"})


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str)

"""The audit log: one hash chain of entries per project.

An entry's hash covers its own fields and the previous hash. The table refuses changes;
a change that bypasses it breaks the chain, and `manage.py verify_audit` names the entry.
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

# Advisory locks: the first number is this namespace, the second the chain.
LOCK_SPACE = 1_096_107_593
LOCK_NUMBERS = 2**31 - 1
INSTALLATION = 0
LONGEST_TARGET = 200
LONGEST_DETAILS = 16_384
BEGINNING = b""
BATCH = 2_000
# The hash also covers the time.
HASHED = ("chain", "number", "actor_id", "actor", "action", "target", "details", "address")

Actor = AbstractBaseUser | AnonymousUser | ApiKey | str | None

_address: ContextVar[str | None] = ContextVar("audit_address", default=None)


@dataclass(frozen=True, slots=True)
class Break:
    """The first entry of a chain that was changed or removed."""

    chain: int
    number: int
    reason: str


@dataclass(frozen=True, slots=True)
class Head:
    """The end of an intact chain; recorded elsewhere, it proves that no entry was cut off."""

    chain: int
    number: int
    hash: str


@contextmanager
def from_address(address: str | None) -> Iterator[None]:
    """Store this address with every entry written inside."""
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
    """Add an entry in the caller's transaction, so that it exists exactly if the change does.

    `action` is a fixed name like `key.revoked`; target and details are redacted. Without a
    project the entry belongs to the installation.
    """
    chain = project_id or INSTALLATION
    actor_id, name = identity_of(actor)
    text = _canonical(redact_json(dict(details or {})))
    if len(text.encode()) > LONGEST_DETAILS:
        text = _canonical({"left_out": f"{len(text)} characters"})
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
            details=text,
            address=_address.get(),
        )
        entry.hash = hash_of(entry, before)
        entry.save(force_insert=True)
    # The log is a second record of the chain's end.
    logger.info("audit_noted", chain=chain, number=entry.number, digest=entry.hash.hex())
    return entry


@contextmanager
def noting(project_id: int, actor: Actor, action: str, target: str) -> Iterator[None]:
    """Add an entry about what is done inside, in one transaction with it."""
    with transaction.atomic():
        yield
        note(project_id, actor, action, target)


def hash_of(entry: AuditEntry, before: bytes) -> bytes:
    """Return the SHA-256 of the previous hash and the entry's fields as canonical JSON."""
    fields = {name: getattr(entry, name) for name in HASHED}
    fields["at"] = entry.at.astimezone(UTC).isoformat(timespec="microseconds")
    return hashlib.sha256(before + _canonical(fields).encode()).digest()


def details_of(entry: AuditEntry) -> dict[str, JSON]:
    details: dict[str, JSON] = json.loads(entry.details)
    return details


def verify_chains(heads: Sequence[Head] = ()) -> list[Head | Break]:
    """Verify every chain; return the end of each, or its first broken entry.

    `heads` were recorded earlier: the entries that they name must still exist.
    """
    rows = AuditEntry.objects.order_by("chain").values_list("chain", flat=True)
    chains = {*rows.distinct(), *(head.chain for head in heads)}
    return [verify_chain(chain, heads) for chain in sorted(chains)]


def verify_chain(chain: int, heads: Sequence[Head] = ()) -> Head | Break:
    ends = {head.number: head.hash for head in heads if head.chain == chain}
    number, before = 0, BEGINNING
    for entry in _walk(chain):
        number += 1
        if entry.number != number:
            reason = f"it is missing: {entry.number} follows {number - 1}"
            return Break(chain, number, reason)
        stored_hash = bytes(entry.hash)
        if stored_hash != hash_of(entry, before):
            return Break(chain, number, "its fields, or those before it, were changed")
        if ends.pop(number, stored_hash.hex()) != stored_hash.hex():
            return Break(chain, number, "it is not the one that was noted")
        before = stored_hash
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
    """Lock the end of a chain until the transaction ends; return its number and hash."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [LOCK_SPACE, chain % LOCK_NUMBERS])
    rows = AuditEntry.objects.filter(chain=chain).order_by("-number")
    last = rows.values_list("number", "hash").first()
    return (0, BEGINNING) if last is None else (last[0], bytes(last[1]))


def identity_of(actor: Actor) -> tuple[int | None, str]:
    """Return the user's id, if it is a user, and the name; never the secret of a key."""
    if isinstance(actor, str):
        return None, actor
    if isinstance(actor, ApiKey):
        return None, f"key {actor.name} ({actor.key_id})"
    if actor is None or not actor.is_authenticated:
        return None, "nobody"
    return actor.pk, actor.get_username()


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, default=str)

"""The columns that the ingest statement needs to count and group an event.

An event counts once in some of the measures of a rollup. These are packed, six to a word with
ten bits each, so that the statement sums eleven numbers instead of sixty conditions; a batch of
up to 1,000 events cannot overflow.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from diagnostics.store.fingerprints import VERSION, kind_of
from diagnostics.store.rollups import COUNTS, PLAIN, latency_bucket
from failsoft.events import EventKind, PostedEvent
from failsoft.parsing.faults import AROUND

Row = Mapping[str, Any]

PACKED = (*PLAIN, *COUNTS)
PER_WORD = 6
BITS = 10
MOST_EVENTS = 1_000
WORDS = -(-len(PACKED) // PER_WORD)
PLACES = {name: divmod(place, PER_WORD) for place, name in enumerate(PACKED)}
CALLS = frozenset({"succeeded", "parse_invalid", "provider_error"})
CALL_TYPES = frozenset({"timeout", "provider_error", "rate_limited"})
# Degraded events without a stub, by reason; the default is a parse failure.
ENDS = {
    "circuit_open": "circuit_open",
    "provider_failed": "provider_failed",
    "budget_exhausted": "budget_exhausted",
    "timeout": "timed_out",
}
MOST_TOLD = 5


def count_columns(event: PostedEvent, row: Row) -> dict[str, Any]:
    """Return the counted columns without a field of their own, if they are true or known.

    The attribute `call_error_type` says why a call gave no answer, `simplified` that its
    prompt was simplified. An answer is altered if reading it changed a value. `w0`, `w1`, ...
    are the words of the measures.
    """
    columns: dict[str, Any] = {}
    if event.kind is EventKind.PROVIDER_ERROR:
        error = row["payload"]["attributes"].get("call_error_type")
        if isinstance(error, str) and error:
            columns["call_error_type"] = error[:200]
    if event.attributes.get("simplified") is True:
        columns["is_simplified"] = True
    if event.kind is EventKind.SUCCEEDED and event.unchecked is None and _is_altered(event):
        columns["is_altered"] = True
    return columns | _pack(event, columns)


def _is_altered(event: PostedEvent) -> bool:
    lossy = (repair.kind for repair in event.repairs if not repair.lossless)
    return bool(event.coerced) or any(kind not in AROUND for kind in lossy)


def _pack(event: PostedEvent, columns: Row) -> dict[str, int]:
    kind, latency = event.kind.value, event.latency_ms
    lenient = bool(event.repairs), bool(event.coerced)
    if kind == "degraded":
        end = event.reason or ""
        end = "parse_failed" if end == f"{event.node}_parse_failed" else end
        is_retried = (event.attempts or 0) > 1
        return _words_of_end(end, event.status, is_retried, *lenient)
    return _words(
        kind,
        min(event.attempt or 0, MOST_TOLD),
        event.unchecked,
        _error_of(event, columns.get("call_error_type")),
        None if latency is None else latency_bucket(latency),
        "is_simplified" in columns,
        "is_altered" in columns,
        *lenient,
    )


def _error_of(event: PostedEvent, call_error: str | None) -> str:
    if event.kind is EventKind.PROVIDER_ERROR:
        return f"call_{call_error if call_error in CALL_TYPES else 'other'}"
    known = event.parse_error_type.value if event.parse_error_type else ""
    return "other_invalid" if known == "other" else known


@lru_cache(maxsize=256)
def _words_of_end(
    reason: str, status: str | None, is_retried: bool, is_repaired: bool, is_coerced: bool
) -> dict[str, int]:
    names = [*_any_names(is_repaired, is_coerced), "runs", "degraded"]
    names += ["stubbed" if status == "stubbed" else ENDS.get(reason, "failed")]
    if reason == "parse_failed":
        names += ["parse_failed", *(["retries_failed"] if is_retried else [])]
    return _packed_names(names)


@lru_cache(maxsize=4096)
def _words(
    kind: str,
    attempt: int,
    unchecked: str | None,
    error: str,
    bucket: int | None,
    is_simplified: bool,
    is_altered: bool,
    is_repaired: bool,
    is_coerced: bool,
) -> dict[str, int]:
    names = _any_names(is_repaired, is_coerced)
    if kind in {"unknown_tool", "cancelled"}:
        return _packed_names([*names, kind])
    names += _attempt_names(kind, attempt, unchecked)
    if kind != "succeeded":
        names += [error, *(["invalid"] if kind == "parse_invalid" else [])]
    names += ["simplified"] if kind == "succeeded" and is_simplified else []
    names += ["ok_altered"] if attempt == 1 and is_altered else []
    if bucket is not None:
        names += ["latency_count", f"latency_{bucket:02}"]
        names += ["invalid_latency_count"] if kind == "parse_invalid" else []
    return _packed_names(names)


def _any_names(is_repaired: bool, is_coerced: bool) -> list[str]:
    names = ["events", *(["json_repaired"] if is_repaired else [])]
    return [*names, *(["coerced"] if is_coerced else [])]


def _attempt_names(kind: str, attempt: int, unchecked: str | None) -> Iterator[str]:
    yield "attempts"
    if attempt > 1:
        yield "retries"
    # The attempt of a span may be known only later; place_calls.sql counts it then.
    if kind == "succeeded":
        yield from ("succeeded", "runs") if attempt else ("succeeded",)
    if unchecked is not None:
        yield f"unchecked_{unchecked}"
        return
    if attempt > 1:
        yield f"tried_{attempt}"
    if kind == "succeeded" and attempt:
        yield "ok_first" if attempt == 1 else "repaired"
        if attempt > 1:
            yield f"good_{attempt}"


def _packed_names(names: list[str]) -> dict[str, int]:
    """Pack names into words, without zeros."""
    words: dict[str, int] = {}
    for name in names:
        word, place = PLACES[name]
        words[f"w{word}"] = words.get(f"w{word}", 0) | 1 << BITS * place
    return words


def group_columns(row: Row) -> dict[str, Any]:
    """Return the fingerprint of a failure and its parts; empty if the event is no failure."""
    if not row.get("payload"):
        return {}
    kind = kind_of(row)
    if kind is None:
        return {}
    return {
        "fingerprint": str(kind.fingerprint),
        "fingerprint_version": VERSION,
        "error_type": kind.error_type,
        "pointer": kind.pointer,
        "detail": kind.detail,
    }

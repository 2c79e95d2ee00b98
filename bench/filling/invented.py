"""Invented runs as lines of COPY: 200 series, versions that follow each other.

One run of seven has a first answer that is invalid, in one of eight ways; of the second
attempts six of ten are good. The same seed gives the same lines.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import md5
from random import Random

from diagnostics.store.fingerprints import FailureKind

SCHEMA = "PlanPayload"
NODES = ("plan", "next_step", "actions", "plan")
SERIES = [
    (("prod", "stage")[k // 100], NODES[k % 4], f"provider-{k % 5}", f"model-{k // 5 % 20}")
    for k in range(200)
]
FAULTS = (
    ("truncated", "", ""),
    ("not_json", "", ""),
    ("empty_output", "", ""),
    ("refusal", "", ""),
    ("multiple_objects", "", ""),
    ("schema_invalid", "/goal", "missing"),
    ("schema_invalid", "/steps/*/id", "type"),
    ("schema_invalid", "/steps/*/tool", "missing"),
)
NULL = r"\N"
PREVIEW = 20
"""Times 32 characters of the answer are kept."""
FIRST_FAILS, SECOND_FAILS = 0.15, 0.4
EVENT_COLUMNS = (
    "project_id, event_id, occurred_at, received_at, correlation_id, node, provider, model,"
    " environment, source, release, schema, schema_version, prompt_version, cycle, kind,"
    " attempt, attempts, parse_error_type, reason, status, finish_reason, output_mode,"
    " latency_ms, input_tokens, output_tokens"
)
PAYLOAD_COLUMNS = (
    "project_id, event_id, occurred_at, raw_output_preview, validation_errors, repairs,"
    " coerced, attributes, redacted_kinds, fingerprint"
)
IDENTITY_COLUMNS = "project_id, event_id, occurred_at, content_hash, received_at"


@dataclass(frozen=True, slots=True)
class Stretch:
    """Part of a day that is filled: so many events, evenly, since <= t < until."""

    project: int
    since: datetime
    until: datetime
    events: int
    day: int
    """Counted from the oldest one: says which versions are in use."""


@dataclass(slots=True)
class Lines:
    """What became of a stretch, beside its events."""

    payloads: list[str] = field(default_factory=list)
    identities: list[str] = field(default_factory=list)


def fault_kinds() -> list[FailureKind]:
    """Give the kinds of failure there are: eight a node."""
    return [
        FailureKind(node, SCHEMA, "parse_invalid", error, pointer, detail)
        for node in sorted(set(NODES))
        for error, pointer, detail in FAULTS
    ]


def event_lines(stretch: Stretch, lines: Lines, *, with_identities: bool) -> Iterator[str]:
    """Give a line an event, oldest first; its other lines are added to `lines`."""
    random = Random(stretch.day)  # noqa: S311 - the same again, not secret
    places, kinds = _places(stretch.day), _fingerprints()
    width = (stretch.until - stretch.since) / max(stretch.events, 1)
    number, run = 0, 0
    while number < stretch.events:
        place = places[run % len(places)]
        node = SERIES[run % len(SERIES)][1]
        for ends, fault in _attempts(random, node, kinds):
            if number == stretch.events:
                break
            at = stretch.since + number * width
            stamp = f"{at:%Y-%m-%d %H:%M:%S.%f}+00"
            key = _identifier(at, random.getrandbits(62))
            tail = ends.format(400 + number % 3_000)
            head = f"{stretch.project}\t{key}\t{stamp}"
            yield f"{head}\t{stamp}\trun-{stretch.day}-{run}\t{place}\t{tail}\n"
            if fault:
                text = md5(key.encode(), usedforsecurity=False).hexdigest() * PREVIEW
                lines.payloads.append(f"{head}\t{text}\t{fault}\n")
            if with_identities:
                lines.identities.append(f"{head}\t\\\\x{key:0>64}\t{stamp}\n")
            number += 1
        run += 1


def _identifier(at: datetime, bits: int) -> str:
    """Write a UUIDv7 of a time."""
    since = at - datetime.fromtimestamp(0, UTC)
    digits = f"{bits:016x}"[1:]
    return f"{since // timedelta(milliseconds=1):012x}7{digits[:3]}8{digits:0>15}"


def _attempts(
    random: Random, node: str, kinds: dict[str, Sequence[str]]
) -> Iterator[tuple[str, str]]:
    """Give the events of a run: how the line ends, and the end of its payload's."""
    if random.random() >= FIRST_FAILS:
        yield _GOOD[0], ""
        return
    number = int(random.random() * len(FAULTS))
    yield _INVALID[0][number], kinds[node][number]
    if random.random() >= SECOND_FAILS:
        yield _GOOD[1], ""
        return
    yield _INVALID[1][number], kinds[node][number]
    yield _ends(node), f"[]\t[]\t[]\t{{}}\t{{}}\t{NULL}"


def _ends(node: str) -> str:
    return f"degraded\t{NULL}\t2\t{NULL}\t{node}_parse_failed\tfailed\t{_CALL}"


_CALL = "stop\ttext\t{}\t900\t300"
_GOOD = [f"succeeded\t{attempt}\t{NULL}\t{NULL}\t{NULL}\t{NULL}\t{_CALL}" for attempt in (1, 2)]
_INVALID = [
    [
        f"parse_invalid\t{attempt}\t{NULL}\t{error}\t{NULL}\t{NULL}\t{_CALL}"
        for error, _, _ in FAULTS
    ]
    for attempt in (1, 2)
]


def _places(day: int) -> list[str]:
    """Give where calls come from, all series once a bot; prompts and releases of a day."""
    return [
        f"{node}\t{provider}\t{model}\t{environment}\tbot-{bot}\tr{day // 10}"
        f"\t{SCHEMA}\t1\tv{day // 6}\t1"
        for bot in range(2)
        for environment, node, provider, model in SERIES
    ]


def _fingerprints() -> dict[str, Sequence[str]]:
    """Give the end of a payload's line of every fault, by node."""
    found: dict[str, list[str]] = {}
    for kind in fault_kinds():
        errors = "[]"
        if kind.pointer:
            path = kind.pointer.replace("*", "2")
            errors = f'[{{"path": "{path}", "code": "{kind.detail}", "message": "Wrong"}}]'
        line = f"{errors}\t[]\t[]\t{{}}\t{{}}\t{kind.fingerprint}"
        found.setdefault(kind.node, []).append(line)
    return {node: tuple(each) for node, each in found.items()}

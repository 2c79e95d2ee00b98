"""Why a call failed: rules on the names, codes and texts of errors.

1. A name (`error.type`, the type of an exception) decides if it says why.
2. Else a status of HTTP decides, reported or in a text.
3. Else the words of a text decide: the message of an exception, or of the span's status.
4. Else the exceptions behind it, which frameworks wrap in one of their own.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from diagnostics.ingest.otlp.answers import ModelCall
from diagnostics.ingest.otlp.attributes import OBSERVATION, TABLE, AttributeMap, count, short
from diagnostics.ingest.otlp.telemetry import SpanEvent
from failsoft.events import CallErrorType, ParseErrorType
from failsoft.parsing.makers import ending_of

OTHER = "_OTHER"
EXCEPTION = "exception"
INTERRUPTED = "cancelled"
ERRORS = TABLE["errors"]
PARSE_ERRORS = {name: ParseErrorType(kind) for name, kind in ERRORS["parse"].items()}
CODES = {code: CallErrorType(kind) for code, kind in ERRORS["codes"].items()}
PARTS = {CallErrorType(kind): parts for kind, parts in ERRORS["parts"].items()}
CANCELS, ABANDONED = frozenset(ERRORS["cancels"]), frozenset(ERRORS["abandoned"])
UNREAD = {ParseErrorType(kind): parts for kind, parts in ERRORS["unread"].items()}
PAGES: list[str] = ERRORS["pages"]
ENDINGS = {"length": ParseErrorType.TRUNCATED, "block": ParseErrorType.REFUSAL}
GAPS = re.compile(r"[_\-\s]+")
# A status in a text: first in it, or behind the word that SDKs put before it.
STATUS = re.compile(
    r"(?:^\W{0,2}|error\W{1,4}|\b(?:status[ _]?code|status|http(?:/[0-9.]+)?|code)\W{0,4})"
    r"([45][0-9]{2})\b",
    re.IGNORECASE,
)
# The name of an exception: a text begins with it, or a stack behind the message, as in JavaScript.
NAME = re.compile(r"(?:^\W{0,2}|\n\n)((?:\w+(?:\.|::))*\w*(?:Error|Exception|Exit))\b")
# Quoted by an error that is about the answer, not about the call.
QUOTED_REASON = re.compile(r"\b(?:finish_|stop_)?reason\W{1,4}([a-z_]+)", re.IGNORECASE)
QUOTED_CODE = re.compile(r"\bcode\W{1,5}([a-z_]+)", re.IGNORECASE)
# Lines of a stack trace that name an exception: the first one is the innermost cause.
CAUSE = re.compile(r"^(?:\w+\.)+\w*(?:Error|Exception|Exit|Timeout)\b.*", re.MULTILINE)
# What the names of types are put together by: in Ruby and Rust, in PHP, elsewhere.
SPACES = re.compile(r"::|\\|\.")
MOST_OF_TEXT = 2000
Kind = TypeVar("Kind", CallErrorType, ParseErrorType)


@dataclass(frozen=True, slots=True)
class CallError:
    """What is reported of the error of a call; the texts are read and not kept."""

    name: str | None = None
    status: str | None = None
    texts: tuple[str, ...] = field(default=(), repr=False)
    causes: tuple[str, ...] = field(default=(), repr=False)

    @property
    def kind(self) -> CallErrorType:
        kinds = (
            _kind_of(self.name or ""),
            _kind_of_status(self.status),
            _kind_in(self.texts),
            _kind_in(self.causes),
        )
        return next(filter(None, kinds), CallErrorType.PROVIDER_ERROR)

    @property
    def parse_error(self) -> ParseErrorType | None:
        """The parse failure that the error names; None for an error of the call itself."""
        names = (SPACES.split(name)[-1] for name in self._names())
        codes = (code for text in self.texts for code in QUOTED_CODE.findall(text))
        found = (PARSE_ERRORS.get(name) for name in (*names, *codes))
        quoted = (match[1] for text in self.texts if (match := QUOTED_REASON.search(text)))
        endings = (ENDINGS.get(ending_of(reason) or "") for reason in quoted)
        return next(filter(None, (*found, *endings, *map(_fault_of, self.texts))), None)

    def named_by(self, call: ModelCall) -> "CallError":
        """Return the error of a call; without a name its reason to end is one if it broke off."""
        return (
            replace(self, name=call.finish_reason) if self.name is None and call.broke_off else self
        )

    def is_cancelled(self, finish_reason: str | None) -> bool:
        """Whether the caller gave the call up: its answer says nothing about the model."""
        names = {self.status or ""}
        for name in self._names():
            lowered = name.strip().lower()
            names |= {lowered, SPACES.split(lowered)[-1]}
        # .NET cancels what takes too long, too.
        is_given_up = not CANCELS.isdisjoint(names) and not any(map(_is_late, self.texts))
        return is_given_up or (finish_reason or "").strip().lower() in ABANDONED

    def _names(self) -> Iterator[str]:
        if self.name is not None:
            yield self.name
        for text in self.texts:
            if (match := NAME.search(text)) is not None:
                yield match[1]
            elif (last := text.rpartition(": ")[2].strip().lower()) in CANCELS:
                yield last


NO_ERROR = CallError()


def raised(events: Iterable[SpanEvent]) -> bool:
    """Return whether an exception was recorded, whatever the status of the span says."""
    return any(event.name == EXCEPTION for event in events)


def read_error(
    attributes: AttributeMap, events: Iterable[SpanEvent], status_message: str
) -> CallError:
    """Read the error: `error.type`, else the last exception, else the HTTP status."""
    exceptions = [event.attributes for event in events if event.name == EXCEPTION]
    error_type = short(attributes, "error.type")
    if error_type == OTHER:
        error_type = None
    raised = [name for error in exceptions if (name := short(error, "exception.type"))]
    message = short(attributes, f"{OBSERVATION}status_message")
    texts = (*(error.get("exception.message") for error in exceptions), status_message, message)
    if any(attributes.get(key) is True for key in TABLE["read"]["interrupted"]):
        return CallError(INTERRUPTED)
    known = tuple(text[:MOST_OF_TEXT] for text in texts if isinstance(text, str) and text)
    code = count(attributes, *TABLE["read"]["status"])
    status = str(code) if code is not None and code >= 400 else None
    name = error_type or next(reversed(raised), None) or status or message
    if name is None:
        name = OTHER if "error.type" in attributes else None
    traces = (error.get("exception.stacktrace") for error in exceptions)
    causes = (
        match[0][:MOST_OF_TEXT]
        for trace in traces
        if isinstance(trace, str)
        for match in CAUSE.finditer(trace)
    )
    return CallError(name, status, known, tuple(causes))


def _kind_of_status(status: str | None) -> CallErrorType | None:
    return CODES.get(status, CallErrorType.PROVIDER_ERROR) if status is not None else None


def _kind_in(texts: tuple[str, ...]) -> CallErrorType | None:
    """Return the kind of the first status in some texts, else of the first telling words."""
    status = next((match[1] for match in map(STATUS.search, texts) if match), None)
    return _kind_of_status(status) or next(filter(None, map(_kind_of, texts)), None)


def _fault_of(text: str) -> ParseErrorType | None:
    """Return what is wrong with an answer by the words of a client that cannot read it."""
    plain = GAPS.sub("", text.lower())
    return None if any(part in plain for part in PAGES) else _row_of(plain, UNREAD)


def _is_late(text: str) -> bool:
    return _kind_of(text) is CallErrorType.TIMEOUT


def _kind_of(text: str) -> CallErrorType | None:
    return CODES.get(text) or _row_of(GAPS.sub("", text.lower()), PARTS)


def _row_of(plain: str, rows: Mapping[Kind, list[str]]) -> Kind | None:
    return next((kind for kind, parts in rows.items() if any(p in plain for p in parts)), None)

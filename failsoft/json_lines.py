"""What commands read and write: JSON Lines, even invalid ones, and text for a terminal."""

import json
import re
import sys
from collections.abc import Callable, Iterator
from io import TextIOWrapper
from typing import IO, Any, TypeVar

from failsoft.json_values import mend_surrogates

MAX_LINE_BYTES = 16 * 1024 * 1024
# int() refuses longer integers, or takes too long.
MAX_DIGITS = 4_000

Line = dict[str, Any]
T = TypeVar("T")
Answer = Callable[[Line], Line]


class LineError(ValueError):
    """A line is invalid: the fault and its column."""

    def __init__(self, message: str, *, code: str = "invalid", column: int = 1) -> None:
        """Set the message and the code; `column` is 1-based."""
        super().__init__(message)
        self.code, self.column = code, column


def answer_lines(lines: IO[bytes], answer: Answer, empty: Line) -> Iterator[Line]:
    """Yield the answer to every line that is not blank, in order, each with its `id`.

    The answer to an unreadable line is `empty` with an `error` that has the line number. Of an
    overlong line no more is kept than shows that it is one.
    """
    number = 0
    while line := lines.readline(MAX_LINE_BYTES + 1):
        number += 1
        rest = line
        while len(rest) > MAX_LINE_BYTES and not rest.endswith(b"\n"):
            rest = lines.readline(MAX_LINE_BYTES + 1)
        if line.strip():
            yield answer_line(line, number, answer, empty)


def answer_together(
    lines: IO[bytes],
    read: Callable[[Line], T],
    answer: Callable[[list[T]], list[Line]],
    empty: Line,
) -> Iterator[Line]:
    """Yield the answers to lines that are answered together, in order, each with its `id`.

    `read` converts one line or raises LineError; `answer` gets all converted lines.
    """
    inputs: list[T] = []

    def keep(line: Line) -> Line:
        inputs.append(read(line))
        return {"place": len(inputs) - 1}

    slots = list(answer_lines(lines, keep, empty))
    answers = answer(inputs)
    for slot in slots:
        index = slot.pop("place", None)
        yield slot if index is None else {"id": slot["id"], **answers[index]}


def answer_line(line: bytes, number: int, answer: Answer, empty: Line) -> Line:
    line_id: object = None
    try:
        request = read_line(line)
        try:
            # NaN and infinities are not JSON.
            json.dumps(request.get("id"), allow_nan=False)
        except ValueError:
            raise LineError('"id" is a JSON value', code="invalid_id") from None
        line_id = request.get("id")
        return {"id": line_id, **answer(request)}
    except LineError as fault:
        error = {
            "type": "bad_input",
            "code": fault.code,
            "line": number,
            "column": fault.column,
            "message": str(fault),
        }
        return {"id": line_id, **empty, "error": error}


def read_line(line: bytes) -> Line:
    """Return the JSON object of a line; LineError when it is anything else."""
    if len(line) > MAX_LINE_BYTES:
        raise LineError(f"a line must have at most {MAX_LINE_BYTES} bytes", code="too_large")
    outermost: list[tuple[str, Any]] = []

    def keep(pairs: list[tuple[str, Any]]) -> Line:
        # The object that is closed last is the line itself.
        outermost[:] = pairs
        return dict(pairs)

    try:
        value = json.loads(
            line.decode("utf-8-sig"),
            parse_int=lambda digits: int(digits) if len(digits) <= MAX_DIGITS else float(digits),
            object_pairs_hook=keep,
        )
    except UnicodeDecodeError as error:
        column = len(line[: error.start].decode("utf-8", "replace")) + 1
        raise LineError(
            "a line must be one JSON object in UTF-8", code="not_utf8", column=column
        ) from None
    except json.JSONDecodeError as error:
        message = f"a line is one JSON object: {error.msg.lower()}"
        raise LineError(message, code="not_json", column=error.colno) from None
    except RecursionError:
        raise LineError("a line must not be nested too deeply", code="too_deep") from None
    if not isinstance(value, dict):
        raise LineError("a line is one JSON object", code="object_type")
    if len(outermost) > len(value):
        raise LineError("a line must not repeat a key", code="duplicate_key")
    return value


def write_line(answer: Line) -> str:
    """Return one line in ASCII; lone surrogates become U+FFFD."""
    return mend_surrogates(json.dumps(answer).encode()).decode()


# Controls but tabs, line ends and the colours of commands; what turns the direction of writing.
_CONTROLS = re.compile(
    "\x1b(?!\\[[0-9;]{0,8}m)"
    "|[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]"
)


class Terminal(TextIOWrapper):
    """Writes controls as their escapes."""

    def write(self, text: str, /) -> int:
        super().write(_CONTROLS.sub(lambda control: ascii(control[0])[1:-1], text))
        return len(text)


def guard_terminal() -> None:
    """Let standard output and error write no controls where they are terminals."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream.isatty():
            guarded = Terminal(stream.buffer, stream.encoding, stream.errors, line_buffering=True)
            setattr(sys, name, guarded)

"""JSON Lines in and out, for commands that answer line by line and never stop at a bad one."""

import json
from collections.abc import Callable, Iterator
from typing import IO, Any, TypeVar

from failsoft.json_values import mend_surrogates

MAX_LINE_BYTES = 16 * 1024 * 1024
# Longer integers are refused by int() or cost more than they say.
MAX_DIGITS = 4_000

Line = dict[str, Any]
T = TypeVar("T")
Answer = Callable[[Line], Line]


class LineError(ValueError):
    """A line is not what the command reads: what is wrong, and where in the line."""

    def __init__(self, message: str, *, code: str = "invalid", column: int = 1) -> None:
        """Say what is wrong; `column` is 1-based."""
        super().__init__(message)
        self.code, self.column = code, column


def answer_lines(lines: IO[bytes], answer: Answer, empty: Line) -> Iterator[Line]:
    """Return the answer to every line that is not blank, in order, each with its `id`.

    One that cannot be read is answered with `empty` and an `error` that has its number.
    """
    for number, line in numbered_lines(lines):
        yield answer_line(line, number, answer, empty)


def numbered_lines(lines: IO[bytes]) -> Iterator[tuple[int, bytes]]:
    """Return every line that is not blank with its number, never more of one than is looked at."""
    number = 0
    while line := lines.readline(MAX_LINE_BYTES + 1):
        number += 1
        rest = line
        while len(rest) > MAX_LINE_BYTES and not rest.endswith(b"\n"):
            rest = lines.readline(MAX_LINE_BYTES + 1)
        if line.strip():
            yield number, line


def answer_together(
    lines: IO[bytes],
    read: Callable[[Line], T],
    answer: Callable[[list[T]], list[Line]],
    empty: Line,
) -> Iterator[Line]:
    """Return the answers to lines that are looked at together, in order, each with its `id`.

    `read` takes one line and raises LineError; `answer` gets what all good ones gave.
    """
    good: list[T] = []

    def keep(asked: Line) -> Line:
        good.append(read(asked))
        return {"place": len(good) - 1}

    told = list(answer_lines(lines, keep, empty))
    answers = answer(good)
    for one in told:
        place = one.pop("place", None)
        yield one if place is None else {"id": one["id"], **answers[place]}


def answer_line(line: bytes, number: int, answer: Answer, empty: Line) -> Line:
    """Return the answer to one line, the `number`th."""
    given_id: object = None
    try:
        asked = read_line(line)
        given_id = _read_id(asked)
        return {"id": given_id, **answer(asked)}
    except LineError as fault:
        error = {
            "type": "bad_input",
            "code": fault.code,
            "line": number,
            "column": fault.column,
            "message": str(fault),
        }
        return {"id": given_id, **empty, "error": error}


def read_line(line: bytes) -> Line:
    """Read one JSON object; LineError says what else it is."""
    if len(line) > MAX_LINE_BYTES:
        raise LineError(f"a line must have at most {MAX_LINE_BYTES} bytes", code="too_large")
    outermost: list[tuple[str, Any]] = []

    def keep(pairs: list[tuple[str, Any]]) -> Line:
        # The object that ends last is the line itself.
        outermost[:] = pairs
        return dict(pairs)

    try:
        asked = json.loads(
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
    if not isinstance(asked, dict):
        raise LineError("a line is one JSON object", code="object_type")
    if len(outermost) > len(asked):
        raise LineError("a line must not repeat a key", code="duplicate_key")
    return asked


def _read_id(asked: Line) -> object:
    """Return the id, which is written back: NaN and infinities are no JSON."""
    given_id = asked.get("id")
    try:
        json.dumps(given_id, allow_nan=False)
    except ValueError:
        raise LineError('"id" is a JSON value', code="invalid_id") from None
    return given_id


def write_line(answer: Line) -> str:
    """Write one line in ASCII; half a character of the input becomes U+FFFD."""
    return mend_surrogates(json.dumps(answer).encode()).decode()

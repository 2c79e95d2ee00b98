"""The `failsoft` command: check plans, results and a server, and read answers."""

import argparse
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import IO, Any
from xml.etree.ElementTree import Element, ElementTree, SubElement

from failsoft import VERSION
from failsoft.json_lines import Line, LineError, answer_lines, guard_terminal, write_line
from failsoft.mcp_bridge import run_bridge
from failsoft.parsing.strict import JsonTextError, locate_faults, parse_json
from failsoft.plans.contract import CONTRACT_VERSION, MAX_PAYLOAD_BYTES
from failsoft.plans.results import validate_results
from failsoft.plans.validation import validate_payload
from failsoft.plans.violations import Violation
from failsoft.redaction import Redactor
from failsoft.retry.answers import AnswerSchema, parse_answer
from failsoft.telemetry.check import add_check

# Results carry outputs, which a payload does not.
MAX_RESULTS_BYTES = 1024 * MAX_PAYLOAD_BYTES
# What the server alone judges: an answer to a request with a schema or tools of its own.
REQUEST_KEYS = frozenset({"tools", "tool_calls", "answer_schema"})
LINE_KEYS = frozenset({"id", "raw", "schema", "finish_reason"})
UNREADABLE = "unreadable"
NOTHING_READ: Line = {"ok": False, "value": None, "repairs": [], "coerced": []}
# XML has no way to write these.
NOT_IN_XML = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
Fault = dict[str, Any]
Mask = Callable[[str], str]


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """A file and its violations of the contract, each with line and column."""

    name: str
    faults: list[Fault]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; 0 if everything is valid, 1 if not, 2 for a wrong command line."""
    guard_terminal()
    parser = argparse.ArgumentParser(prog="failsoft", description=__doc__)
    parser.add_argument("--version", action="version", version=VERSION)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for add in (_add_verify, _add_parse, add_check, _add_mcp):
        add(commands)
    options = parser.parse_args(arguments)
    if isinstance(sys.stdout, TextIOWrapper):
        # An output that is not UTF-8, and names of files that are not, end no check.
        sys.stdout.reconfigure(errors="backslashreplace")
    run: Callable[[argparse.Namespace], int] = options.run
    try:
        return run(options)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read the output left; what is still kept for it would fail at the exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141


def read_document(name: str, limit: int) -> tuple[Any, str]:
    """Return the JSON value of a file of at most `limit` bytes, and its text; `-` is stdin.

    Raises JsonTextError; its code is `unreadable` when the file cannot be read.
    """
    try:
        if name == "-":
            raw = sys.stdin.buffer.read(limit + 1)
        else:
            with Path(name).open("rb") as file:
                raw = file.read(limit + 1)
    except OSError as error:
        reason = error.strerror or "cannot be read"
        raise JsonTextError(UNREADABLE, f"{name}: {reason}") from None
    return parse_json(raw, limit), raw.decode("utf-8-sig")


def check_payload(
    name: str, mask: Mask, *, strict: bool = False, tools: Sequence[str] | None = None
) -> list[Fault]:
    """Return the violations of a plan payload; `strict` refuses tools that are not `tools`."""
    check = partial(validate_payload, strict=strict, known_tools=tools)
    return _check(name, MAX_PAYLOAD_BYTES, check, mask)


def check_results(name: str, mask: Mask) -> list[Fault]:
    return _check(name, MAX_RESULTS_BYTES, validate_results, mask)


def describe_fault(fault: Fault) -> str:
    if fault["code"] == UNREADABLE:
        return f"{fault['message']} [{UNREADABLE}]"
    path = f" {fault['path']}" if fault["path"] else ""
    place = f"line {fault['line']}, column {fault['column']}"
    return f"{place}:{path} {fault['message']} [{fault['code']}]"


def parse_lines(lines: IO[bytes], schema: AnswerSchema) -> Iterator[Line]:
    return answer_lines(lines, partial(parse_line, schema), NOTHING_READ)


def parse_line(schema: AnswerSchema, line: Line) -> Line:
    """Return the reading of `{"raw", "schema", "finish_reason"}`, and the keys that it ignores.

    Raises LineError.
    """
    if unread := ", ".join(sorted(REQUEST_KEYS & line.keys())):
        raise LineError(f"{unread}: only `manage.py parse` of a server reads this")
    if not isinstance(line.get("raw"), str):
        raise LineError('"raw" must be the text of an answer')
    for key in ("schema", "finish_reason"):
        if not isinstance(line.get(key), str | None):
            raise LineError(f'"{key}" must be a string or null')
    if line.get("schema") and line["schema"] not in set(AnswerSchema):
        known = ", ".join(AnswerSchema)
        raise LineError(f'"schema" must be one of {known}')
    expected = AnswerSchema(line.get("schema") or schema)
    answer = parse_answer(line["raw"], expected, line.get("finish_reason"))
    ignored = sorted(line.keys() - LINE_KEYS)
    return {**answer, "ignored": ignored} if ignored else answer


def _add_verify(commands: Any) -> None:  # noqa: ANN401 - argparse keeps its type private
    verify = commands.add_parser("verify", help="check plan payloads or results by the contract")
    verify.add_argument("files", nargs="+", metavar="FILE", help="JSON; - is standard input")
    verify.add_argument("--results", action="store_true", help="the files are results, not plans")
    verify.add_argument(
        "--strict", action="store_true", help="plans: no unknown tools and keys, as in the contract"
    )
    verify.add_argument(
        "--tool", action="append", metavar="NAME", help="with --strict: a known tool; default: all"
    )
    verify.add_argument("--json", action="store_true", help="print one JSON document")
    verify.add_argument("--github", action="store_true", help="print annotations of GitHub Actions")
    verify.add_argument("--junit", metavar="FILE", help="also write a JUnit XML report")
    verify.set_defaults(run=_verify)


def _add_parse(commands: Any) -> None:  # noqa: ANN401 - argparse keeps its type private
    parse = commands.add_parser("parse", help='read answers of models, {"raw": TEXT} a line')
    parse.add_argument(
        "--schema",
        choices=[schema.value for schema in AnswerSchema],
        default=AnswerSchema.NONE.value,
        help="schema of lines without their own",
    )
    parse.set_defaults(run=_parse)


def _add_mcp(commands: Any) -> None:  # noqa: ANN401 - argparse keeps its type private
    mcp = commands.add_parser("mcp", help="let an assistant ask the server of FAILSOFT_URL")
    mcp.set_defaults(run=lambda _: run_bridge(iter(sys.stdin.buffer), sys.stdout))


def _verify(options: argparse.Namespace) -> int:
    redactor = Redactor()

    def mask(text: str) -> str:
        return redactor.redact(text).text

    checked = [
        CheckedFile(
            name,
            check_results(name, mask)
            if options.results
            else check_payload(name, mask, strict=options.strict, tools=options.tool),
        )
        for name in options.files
    ]
    write = _write_json if options.json else _write_github if options.github else _write_text
    write(checked)
    if options.junit:
        try:
            _junit(checked).write(options.junit, encoding="utf-8", xml_declaration=True)
        except OSError as error:
            sys.stderr.write(f"--junit {options.junit}: {error.strerror}\n")
            return 2
    return 1 if any(file.faults for file in checked) else 0


def _parse(options: argparse.Namespace) -> int:
    code = 0
    for answer in parse_lines(sys.stdin.buffer, AnswerSchema(options.schema)):
        _say(write_line(answer))
        code = code if answer["ok"] else 1
    return code


def _check(
    name: str, limit: int, check: Callable[[Any], list[Violation]], mask: Mask
) -> list[Fault]:
    try:
        value, text = read_document(name, limit)
    except JsonTextError as error:
        return [error.as_dict() | {"message": mask(error.message)}]
    # Messages quote names from the document.
    return [
        {**fault, "message": mask(fault["message"])}
        for fault in locate_faults(text, [fault.as_dict() for fault in check(value)])
    ]


def _write_text(checked: Sequence[CheckedFile]) -> None:
    for file in checked:
        for fault in file.faults:
            _say(f"{file.name}: {describe_fault(fault)}")
        _say(f"{file.name}: {'FAIL' if file.faults else 'PASS'}")


def _write_json(checked: Sequence[CheckedFile]) -> None:
    files = [
        {"file": file.name, "valid": not file.faults, "errors": file.faults} for file in checked
    ]
    _say(json.dumps({"contract_version": CONTRACT_VERSION, "files": files}, indent=2))


def _write_github(checked: Sequence[CheckedFile]) -> None:
    for file in checked:
        for fault in file.faults:
            place = f"file={_property(file.name)},line={fault['line']},col={fault['column']}"
            text = f"{fault['path']} {fault['message']}".strip()
            _say(f"::error {place},title={_property(fault['code'])}::{_data(text)}")


def _junit(checked: Sequence[CheckedFile]) -> "ElementTree[Element]":
    failed = sum(bool(file.faults) for file in checked)
    suite = Element(
        "testsuite", name="failsoft verify", tests=str(len(checked)), failures=str(failed)
    )
    for file in checked:
        case = SubElement(suite, "testcase", classname="failsoft.verify", name=_xml(file.name))
        if file.faults:
            many = f"{len(file.faults)} violation{'s' if len(file.faults) > 1 else ''}"
            message = f"{many} of contract {CONTRACT_VERSION}"
            failure = SubElement(case, "failure", message=message)
            failure.text = _xml("\n".join(map(describe_fault, file.faults)))
    return ElementTree(suite)


def _xml(text: str) -> str:
    return NOT_IN_XML.sub(lambda char: ascii(char[0])[1:-1], text)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

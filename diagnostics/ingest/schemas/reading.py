"""Reading a posted JSON Schema (draft 2020-12), once, before it is stored.

Anything that would make checking unbounded or be silently ignored is refused with its place:
remote references, look-around in patterns, keywords of other drafts.
"""

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from typing import Any
from urllib.parse import unquote

from diagnostics.ingest.schemas.assertions import (
    ASSERTIONS,
    PATTERN_BYTES,
    TYPES,
    BadArgumentError,
    compile_pattern,
    natural,
    word_expectation,
)
from diagnostics.ingest.schemas.checking import (
    APPLICATORS,
    Check,
    Rule,
    SchemaFault,
    SchemaNode,
    ValuePlace,
    never,
)
from failsoft.json_values import clean_json, pointer_of

MAX_BYTES = 64 * 1024
MAX_NODES = 10_000
MAX_DEPTH = 32
MAX_IGNORED = 20
MAX_PATTERNS = 500
# Of all patterns together: a short one can have tens of thousands.
MAX_INSTRUCTIONS = 100_000
# A compiled node, without its pointer.
NODE_BYTES = 400
DIALECT = re.compile(r"https?://json-schema\.org/draft/2020-12/schema#?")
# Keywords that hold one schema, a list of schemas, or an object of schemas.
ONE = frozenset(
    {"additionalProperties", "propertyNames", "items", "contains"} | {"not", "if", "then", "else"}
)
LISTS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
MAPS = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs", "definitions"})
# Of those, the ones whose schemas apply to the same value.
IN_PLACE = frozenset({"allOf", "anyOf", "oneOf", "not", "if", "then", "else", "dependentSchemas"})
NAMES = frozenset({"required", "dependentRequired"})
ANNOTATIONS = frozenset(
    {"title", "description", "default", "examples", "deprecated", "readOnly"}
    | {"writeOnly", "$comment", "$schema", "$id", "$vocabulary", "minContains", "maxContains"}
)
# Refused rather than ignored: each changes which values are valid.
REFUSED: Mapping[str, str] = {
    "additionalItems": "use prefixItems and items",
    "dependencies": "use dependentRequired or dependentSchemas",
    "nullable": 'use "type": ["...", "null"]',
    "unevaluatedProperties": "use additionalProperties",
    "unevaluatedItems": "use items",
    "$anchor": "refer to places by pointer: #/$defs/name",
    "$dynamicAnchor": "refer to places by pointer: #/$defs/name",
    "$dynamicRef": "use $ref with a pointer: #/$defs/name",
    "$recursiveRef": "use $ref with a pointer: #",
    "$recursiveAnchor": "use $ref with a pointer: #",
}
# Of a schema in a request these are passed over.
UNCHECKED = frozenset({*REFUSED, "pattern", "patternProperties"})


class SchemaFaultError(ValueError):
    """A schema is refused: the pointer, a code and what is expected there."""

    def __init__(self, path: str, code: str, message: str) -> None:
        super().__init__(message)
        self.path = path
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class CompiledSchema:
    """A compiled schema; `ignored` are pointers to keywords that check nothing.

    `size` is about the number of bytes in memory.
    """

    nodes: Mapping[str, SchemaNode]
    title: str | None
    ignored: tuple[str, ...]
    size: int


def read_schema(document: Any, is_ours: bool = True) -> CompiledSchema:  # noqa: ANN401 - any JSON
    """Read a schema, or raise SchemaFaultError with the first thing that is wrong.

    At most 64 KiB, 10,000 values, 32 levels, 500 patterns; references only inside the document.
    In a schema from a request (`is_ours` false) anything unsupported (patterns, anchors, other
    drafts) is ignored, and the caller bounds its size.
    """
    if is_ours:
        _check_bounds(document)
    reader = _Reader(is_ours)
    reader.read(document, "")
    reader.check_references()
    title = document.get("title") if isinstance(document, dict) else None
    stripped = title.strip()[:200] if isinstance(title, str) else ""
    ignored = tuple(reader.ignored[:MAX_IGNORED])
    return CompiledSchema(reader.nodes, stripped or None, ignored, reader.size)


def _check_bounds(document: Any) -> None:  # noqa: ANN401 - any JSON
    storable, fault = clean_json(document, MAX_NODES, MAX_DEPTH)
    if fault is not None:
        raise SchemaFaultError(fault.path, fault.code, fault.message)
    if storable != document:
        raise SchemaFaultError("", "text", "strings without NUL and lone surrogates")
    if len(json.dumps(document, ensure_ascii=False).encode()) > MAX_BYTES:
        raise SchemaFaultError("", "too_large", f"at most {MAX_BYTES} bytes")
    if isinstance(document, dict):
        dialect = document.get("$schema")
        if dialect is not None and not (isinstance(dialect, str) and DIALECT.fullmatch(dialect)):
            raise SchemaFaultError("/$schema", "dialect", "expected draft 2020-12")


class _Reader:
    def __init__(self, is_ours: bool) -> None:
        self.is_ours = is_ours
        self.nodes: dict[str, SchemaNode] = {}
        self.ignored: list[str] = []
        self._patterns = 0
        self._instructions = 0
        self._is_loose = False
        # Pairs of a schema's pointer and the pointer that it refers to.
        self._references: list[tuple[str, str]] = []
        # From a schema to those applied to the same value.
        self._beside = defaultdict[str, list[str]](list)

    def read(self, schema: Any, pointer: str) -> SchemaNode:  # noqa: ANN401 - any JSON
        node = self.nodes[pointer] = SchemaNode()
        if isinstance(schema, bool):
            node.rules = [] if schema else [never]
            return node
        if not isinstance(schema, dict):
            raise SchemaFaultError(pointer, "schema", "expected an object or a boolean")
        node.is_nullable = schema.get("nullable") is True
        for keyword in schema:
            at = pointer + pointer_of([keyword])
            try:
                self._read_keyword(node, keyword, schema, pointer)
            except BadArgumentError as error:
                raise SchemaFaultError(at, "argument", f"expected {error}") from error
        return node

    @property
    def size(self) -> int:
        nodes = sum(map(len, self.nodes)) + NODE_BYTES * len(self.nodes)
        return nodes + PATTERN_BYTES * self._patterns

    def check_references(self) -> None:
        for pointer, target in self._references:
            if target not in self.nodes:
                message = "no schema found here"
                raise SchemaFaultError(f"{pointer}/$ref", "reference", message)
            self.nodes[pointer].arguments["$ref"] = self.nodes[target]
        for node in self.nodes.values():
            node.is_loose = self._is_loose
        try:
            TopologicalSorter(self._beside).prepare()
        except CycleError as error:
            at = next(f"{it}/$ref" for it, _ in self._references if it in error.args[1])
            message = "refers to itself without going into the value"
            raise SchemaFaultError(at, "reference", message) from None

    def _read_keyword(
        self, node: SchemaNode, keyword: str, schema: dict[str, Any], pointer: str
    ) -> None:
        at, argument = pointer + pointer_of([keyword]), schema[keyword]
        if self.is_ours and (keyword in REFUSED or (keyword == "$id" and pointer)):
            reason = REFUSED.get(keyword, "only the root may have an $id")
            raise SchemaFaultError(at, "unsupported", reason)
        self._is_loose |= not self.is_ours and keyword in UNCHECKED
        if keyword in ASSERTIONS:
            if self.is_ours or keyword != "pattern":
                rules = node.first if keyword == "type" else node.rules
                operand = ASSERTIONS[keyword].read(argument)
                if keyword == "pattern":
                    self._count(operand)
                rules.append(_assert(keyword, operand, word_expectation(keyword, argument)))
        elif keyword == "$ref":
            self._read_reference(node, argument, pointer)
        elif keyword in ONE | LISTS | MAPS | NAMES:
            node.arguments[keyword] = self._read_argument(keyword, schema, pointer, at)
            is_checked = self.is_ours or not (
                keyword == "patternProperties"
                or (keyword == "additionalProperties" and "patternProperties" in schema)
            )
            if keyword in APPLICATORS and is_checked:
                node.rules.append(_apply(keyword, node))
            if keyword == "patternProperties" and is_checked:
                inner = node.arguments[keyword]
                node.patterns = [
                    (self._count(compile_pattern(text)), inner[text]) for text in inner
                ]
        elif keyword not in ANNOTATIONS:
            self.ignored.append(at)

    def _count(self, pattern: Any) -> Any:  # noqa: ANN401 - re2 has no types
        """Return a compiled pattern, unless the schema has too many or too large ones."""
        self._patterns += 1
        self._instructions += pattern.programsize
        if self._patterns > MAX_PATTERNS or self._instructions > MAX_INSTRUCTIONS:
            raise BadArgumentError("fewer or simpler patterns in the whole schema")
        return pattern

    def _read_argument(self, keyword: str, schema: dict[str, Any], pointer: str, at: str) -> Any:  # noqa: ANN401 - as the applicator takes it
        argument = schema[keyword]
        if keyword == "required":
            return _names(argument)
        if keyword == "dependentRequired":
            return {name: _names(names) for name, names in _require_object(argument).items()}
        if keyword in LISTS:
            if not isinstance(argument, list) or not argument:
                raise BadArgumentError("a list of schemas")
            parts = dict(enumerate(argument))
            return list(self._read_parts(keyword, parts, pointer, at).values())
        if keyword in MAPS:
            return self._read_parts(keyword, _require_object(argument), pointer, at)
        inner = self._read_part(keyword, argument, pointer, at)
        if keyword == "contains":
            maximum = natural(schema.get("maxContains", 2**53))
            return inner, natural(schema.get("minContains", 1)), maximum
        return inner

    def _read_parts(
        self, keyword: str, parts: Mapping[Any, Any], pointer: str, at: str
    ) -> dict[Any, SchemaNode]:
        return {
            key: self._read_part(keyword, part, pointer, at + pointer_of([key]))
            for key, part in parts.items()
        }

    def _read_part(self, keyword: str, part: object, pointer: str, at: str) -> SchemaNode:
        if keyword in IN_PLACE:
            self._beside[pointer].append(at)
        return self.read(part, at)

    def _read_reference(self, node: SchemaNode, argument: object, pointer: str) -> None:
        if not isinstance(argument, str) or not argument.startswith("#"):
            message = "only places in this document: #/..."
            raise SchemaFaultError(f"{pointer}/$ref", "reference", message)
        target = unquote(argument[1:])
        if self.is_ours or target[:1] in ("", "/"):
            self._references.append((pointer, target))
            self._beside[pointer].append(target)
            node.rules.append(_apply("$ref", node))


def _assert(keyword: str, operand: object, expectation: str) -> Rule:
    assertion = ASSERTIONS[keyword]
    holds, cost = assertion.holds, assertion.cost
    judges = TYPES[assertion.judges] if assertion.judges else None
    code = re.sub("[A-Z]", lambda capital: f"_{capital[0].lower()}", keyword)

    def rule(check: Check, value: Any, place: ValuePlace) -> list[SchemaFault]:  # noqa: ANN401
        if judges is not None and not judges(value):
            return []
        check.spend(cost(value, operand))
        if holds(value, operand):
            return []
        return [SchemaFault(place, code, expectation + assertion.hint(value, operand))]

    return rule


def _apply(keyword: str, node: SchemaNode) -> Rule:
    name, apply = APPLICATORS[keyword]
    judges = TYPES[name] if name else None

    def rule(check: Check, value: Any, place: ValuePlace) -> Any:  # noqa: ANN401 - faults
        return apply(check, node, value, place) if judges is None or judges(value) else ()

    return rule


def _names(argument: object) -> list[str]:
    if not isinstance(argument, list) or not all(isinstance(name, str) for name in argument):
        raise BadArgumentError("a list of names")
    return list(dict.fromkeys(argument))


def _require_object(argument: object) -> Mapping[str, Any]:
    if not isinstance(argument, dict):
        raise BadArgumentError("an object")
    return argument

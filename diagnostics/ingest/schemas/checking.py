"""Checking a value against a compiled schema: faults with places, bounded work.

And the keywords that apply other schemas to the same value, or to its parts.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from diagnostics.ingest.schemas.assertions import MAX_STEPS, pattern_steps
from failsoft.json_values import pointer_of

MAX_LEVELS = 150
# Between two looks at the clock.
LOOK_STEPS = 2_000

Rule = Callable[["Check", Any, "ValuePlace"], Iterable["SchemaFault"]]
IsLate = Callable[[], bool]
Faults = Iterable["SchemaFault"]
Object = dict[str, Any]
Apply = Callable[["Check", "SchemaNode", Any, "ValuePlace"], Faults]
MISSING, EXTRA = "missing", "extra_forbidden"


def never_late() -> bool:
    """Return False: only steps bound the work."""
    return False


class OverBudgetError(Exception):
    """the value takes more work than is given to one answer"""


class ValuePlace(NamedTuple):
    """A place in a value: the last segment of its pointer, and the enclosing place."""

    around: "ValuePlace | None"
    segment: str | int

    @property
    def segments(self) -> list[str | int]:
        parts: list[str | int] = []
        here: ValuePlace | None = self
        while here is not None and here.around is not None:
            parts.append(here.segment)
            here = here.around
        return parts[::-1]

    @property
    def pointer(self) -> str:
        return pointer_of(self.segments)


ROOT = ValuePlace(None, "")


@dataclass(frozen=True, slots=True)
class SchemaFault:
    """A violation: the place, the keyword and what was expected."""

    place: ValuePlace
    code: str
    message: str


@dataclass(slots=True)
class SchemaNode:
    """One schema and its rules; if one of `first` fails, the others are skipped.

    `arguments` are those of its applicators, with nodes in place of schemas. Where something of
    the whole schema is passed over (`is_loose`), what fits too much must not refuse a value.
    """

    first: list[Rule] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    arguments: dict[str, Any] = field(default_factory=dict)
    # Compiled `patternProperties`.
    patterns: list[tuple[Any, "SchemaNode"]] = field(default_factory=list)
    is_loose: bool = False
    is_nullable: bool = False


class Check:
    """One pass over one value; raises OverBudgetError when it takes too long.

    A step is about a microsecond. Whatever costs more than a few of them is spent before it
    is done, so that nothing between two looks at the clock takes long.
    """

    def __init__(self, is_late: IsLate) -> None:
        self.remaining = self._next_look = MAX_STEPS
        self.level = 0
        self._is_late = is_late

    def spend(self, steps: int) -> None:
        self.remaining -= steps
        if self.remaining < self._next_look:
            if self.remaining < 0 or self._is_late():
                raise OverBudgetError(OverBudgetError.__doc__)
            self._next_look = max(self.remaining - LOOK_STEPS, 0)

    def faults(self, node: SchemaNode, value: object, place: ValuePlace) -> list[SchemaFault]:
        """List what does not fit, in the order of the schema's keywords."""
        if value is None and node.is_nullable:
            return []
        self.spend(1 + len(node.rules))
        self.level += 1
        if self.level > MAX_LEVELS:
            raise OverBudgetError(OverBudgetError.__doc__)
        faults: list[SchemaFault] = []
        for rule in node.first:
            faults += rule(self, value, place)
        if not faults:
            for rule in node.rules:
                faults += rule(self, value, place)
        self.level -= 1
        # The form around it copies and weighs them.
        self.spend(len(faults))
        return faults

    def holds(self, node: SchemaNode, value: object) -> bool:
        return not self.faults(node, value, ROOT)


def check(
    nodes: Mapping[str, SchemaNode], value: object, is_late: IsLate = never_late
) -> list[SchemaFault]:
    """List every fault of a value against the schema's nodes (by pointer, root at "").

    Raises OverBudgetError after 150,000 steps, or when it is late.
    """
    return Check(is_late).faults(nodes[""], value, ROOT)


def never(_check: Check, _value: object, place: ValuePlace) -> Faults:
    """Refuse every value: the schema `false`."""
    return [SchemaFault(place, "false_schema", "nothing is allowed here")]


def _properties(check: Check, node: SchemaNode, value: Object, place: ValuePlace) -> Faults:
    known: Mapping[str, SchemaNode] = node.arguments["properties"]
    check.spend(len(value))
    for name, item in value.items():
        if name in known:
            yield from check.faults(known[name], item, ValuePlace(place, name))


def _pattern_properties(check: Check, node: SchemaNode, value: Object, place: ValuePlace) -> Faults:
    _spend_searches(check, node, value)
    for name, item in value.items():
        for expression, inner in node.patterns:
            if expression.search(name):
                yield from check.faults(inner, item, ValuePlace(place, name))


def _additional(check: Check, node: SchemaNode, value: Object, place: ValuePlace) -> Faults:
    _spend_searches(check, node, value)
    inner: SchemaNode = node.arguments["additionalProperties"]
    known = node.arguments.get("properties", {})
    for name in sorted(name for name in value if name not in known):
        if any(expression.search(name) for expression, _ in node.patterns):
            continue
        if inner.rules == [never]:
            message = "no property of this name is allowed"
            yield SchemaFault(ValuePlace(place, name), EXTRA, message)
        else:
            yield from check.faults(inner, value[name], ValuePlace(place, name))


def _spend_searches(check: Check, node: SchemaNode, value: Object) -> None:
    check.spend(len(value))
    for expression, _ in node.patterns:
        check.spend(sum(pattern_steps(expression, name) for name in value))


def _property_names(check: Check, node: SchemaNode, value: Object, place: ValuePlace) -> Faults:
    for name in value:
        for fault in check.faults(node.arguments["propertyNames"], name, place):
            message = f"its name: {fault.message}"
            yield SchemaFault(ValuePlace(place, name), "property_names", message)


def _required(check: Check, node: SchemaNode, value: Object, place: ValuePlace) -> Faults:
    return _missing(check, node.arguments["required"], value, place)


def _dependent_required(check: Check, node: SchemaNode, value: Object, place: ValuePlace) -> Faults:
    dependent: Mapping[str, list[str]] = node.arguments["dependentRequired"]
    check.spend(len(value))
    for name in value:
        yield from _missing(check, dependent.get(name, []), value, place)


def _missing(
    check: Check, names: list[str], value: Object, place: ValuePlace
) -> Iterator[SchemaFault]:
    check.spend(len(names))
    for name in names:
        if name not in value:
            yield SchemaFault(ValuePlace(place, name), MISSING, "this property is required")


def _dependent_schemas(check: Check, node: SchemaNode, value: Object, place: ValuePlace) -> Faults:
    dependent: Mapping[str, SchemaNode] = node.arguments["dependentSchemas"]
    check.spend(len(value))
    for name in value:
        if name in dependent:
            yield from check.faults(dependent[name], value, place)


def _prefix_items(check: Check, node: SchemaNode, value: list[Any], place: ValuePlace) -> Faults:
    pairs = zip(node.arguments["prefixItems"], value, strict=False)
    for index, (inner, item) in enumerate(pairs):
        yield from check.faults(inner, item, ValuePlace(place, index))


def _items(check: Check, node: SchemaNode, value: list[Any], place: ValuePlace) -> Faults:
    inner: SchemaNode = node.arguments["items"]
    for index in range(len(node.arguments.get("prefixItems", ())), len(value)):
        yield from check.faults(inner, value[index], ValuePlace(place, index))


def _contains(check: Check, node: SchemaNode, value: list[Any], place: ValuePlace) -> Faults:
    inner, least, maximum = node.arguments["contains"]
    count = sum(check.holds(inner, item) for item in value)
    if not least <= count <= (len(value) if node.is_loose else maximum):
        bound = f"at least {least}" if count < least else f"at most {maximum}"
        yield SchemaFault(place, "contains", f"expected {bound} items of a certain form")


def _all_of(check: Check, node: SchemaNode, value: object, place: ValuePlace) -> Faults:
    for inner in node.arguments["allOf"]:
        yield from check.faults(inner, value, place)


def _any_of(check: Check, node: SchemaNode, value: object, place: ValuePlace) -> Faults:
    branches: list[list[SchemaFault]] = []
    for inner in node.arguments["anyOf"]:
        branches.append(check.faults(inner, value, place))
        if not branches[-1]:
            return []
    return nearest(branches, place, "any_of")


def _one_of(check: Check, node: SchemaNode, value: object, place: ValuePlace) -> Faults:
    faults_by_form = [check.faults(inner, value, place) for inner in node.arguments["oneOf"]]
    fitting = sum(not faults for faults in faults_by_form)
    if fitting == 0:
        return nearest(faults_by_form, place, "one_of")
    message = f"fits {fitting} of {len(faults_by_form)} forms, expected exactly one"
    return [] if fitting == 1 or node.is_loose else [SchemaFault(place, "one_of", message)]


def nearest(
    faults_by_form: list[list[SchemaFault]], place: ValuePlace, code: str
) -> list[SchemaFault]:
    """Return the faults of the form that was probably meant.

    That is the one whose type fits, whose constants fit, and with the fewest faults. When
    no form's type fits, there is one fault that names all of them.
    """
    if all(_is_other_type(faults, place) for faults in faults_by_form):
        message = " or ".join(dict.fromkeys(faults[0].message for faults in faults_by_form))
        return [SchemaFault(place, code, message)]
    return min(faults_by_form, key=lambda faults: _distance(faults, place))


def _is_other_type(faults: list[SchemaFault], place: ValuePlace) -> bool:
    return any(it.place is place and it.code in ("type", "false_schema") for it in faults)


def _distance(faults: list[SchemaFault], place: ValuePlace) -> tuple[bool, bool, int]:
    is_tagged_otherwise = any(
        fault.place.around is place and fault.code in ("const", "enum") for fault in faults
    )
    return _is_other_type(faults, place), is_tagged_otherwise, len(faults)


def _not(check: Check, node: SchemaNode, value: object, place: ValuePlace) -> Faults:
    if not node.is_loose and check.holds(node.arguments["not"], value):
        yield SchemaFault(place, "not", "has a form that is not allowed")


def _if(check: Check, node: SchemaNode, value: object, place: ValuePlace) -> Faults:
    if node.is_loose:
        return []
    branch = "then" if check.holds(node.arguments["if"], value) else "else"
    inner = node.arguments.get(branch)
    return [] if inner is None else check.faults(inner, value, place)


def _ref(check: Check, node: SchemaNode, value: object, place: ValuePlace) -> Faults:
    return check.faults(node.arguments["$ref"], value, place)


class Applicator(NamedTuple):
    """The type of value that a keyword applies to (None: all), and its function."""

    judges: str | None
    apply: Apply


# `then`, `else`, `minContains` and `maxContains` are read with their main keywords.
APPLICATORS: Mapping[str, Applicator] = {
    "$ref": Applicator(None, _ref),
    "required": Applicator("object", _required),
    "dependentRequired": Applicator("object", _dependent_required),
    "properties": Applicator("object", _properties),
    "patternProperties": Applicator("object", _pattern_properties),
    "additionalProperties": Applicator("object", _additional),
    "propertyNames": Applicator("object", _property_names),
    "dependentSchemas": Applicator("object", _dependent_schemas),
    "prefixItems": Applicator("array", _prefix_items),
    "items": Applicator("array", _items),
    "contains": Applicator("array", _contains),
    "allOf": Applicator(None, _all_of),
    "anyOf": Applicator(None, _any_of),
    "oneOf": Applicator(None, _one_of),
    "not": Applicator(None, _not),
    "if": Applicator(None, _if),
}

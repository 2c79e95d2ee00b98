"""Keywords that apply other schemas: to the same value, or to what is inside it.

A factory takes the keyword's argument, the schema around it and `node_at`, which gives the
node of a schema below by the segments of its pointer.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from diagnostics.ingest.schemas.assertions import BadArgumentError, compile_pattern, natural
from diagnostics.ingest.schemas.checking import Check, Rule, SchemaFault, SchemaNode, ValuePlace

NodeAt = Callable[..., SchemaNode]
Around = Mapping[str, Any]
Factory = Callable[[Any, Around, NodeAt], Rule]
MISSING, EXTRA = "missing", "extra_forbidden"


def never(_check: Check, _value: object, place: ValuePlace) -> list[SchemaFault]:
    """Refuse every value: the schema `false`."""
    return [SchemaFault(place, "false_schema", "nothing is allowed here")]


def _properties(argument: Any, _around: Around, node_at: NodeAt) -> Rule:  # noqa: ANN401
    nodes = {name: node_at("properties", name) for name in argument}

    def rule(check: Check, value: Any, place: ValuePlace) -> list[SchemaFault]:  # noqa: ANN401
        found: list[SchemaFault] = []
        if isinstance(value, dict):
            for name, node in nodes.items():
                if name in value:
                    found += check.faults(node, value[name], ValuePlace(place, name))
        return found

    return rule


def _pattern_properties(argument: Any, _around: Around, node_at: NodeAt) -> Rule:  # noqa: ANN401
    pairs = [
        (compile_pattern(pattern), node_at("patternProperties", pattern)) for pattern in argument
    ]

    def rule(check: Check, value: Any, place: ValuePlace) -> list[SchemaFault]:  # noqa: ANN401
        found: list[SchemaFault] = []
        if isinstance(value, dict):
            check.spend(len(value) * len(pairs))
            for name, item in value.items():
                for expression, node in pairs:
                    if expression.search(name):
                        found += check.faults(node, item, ValuePlace(place, name))
        return found

    return rule


def _additional(argument: Any, around: Around, node_at: NodeAt) -> Rule:  # noqa: ANN401
    named = frozenset(around.get("properties", ()))
    patterns = [compile_pattern(text) for text in around.get("patternProperties", ())]
    node = node_at("additionalProperties")

    def fault_of(check: Check, item: object, place: ValuePlace) -> list[SchemaFault]:
        if argument is False:
            return [SchemaFault(place, EXTRA, "no property of this name is allowed")]
        return check.faults(node, item, place)

    def rule(check: Check, value: Any, place: ValuePlace) -> list[SchemaFault]:  # noqa: ANN401
        if not isinstance(value, dict):
            return []
        check.spend(len(value) * (1 + len(patterns)))
        found: list[SchemaFault] = []
        for name in value.keys() - named:
            if not any(expression.search(name) for expression in patterns):
                found += fault_of(check, value[name], ValuePlace(place, name))
        return sorted(found, key=lambda fault: fault.place.pointer)

    return rule


def _property_names(_argument: Any, _around: Around, node_at: NodeAt) -> Rule:  # noqa: ANN401
    node = node_at("propertyNames")

    def rule(check: Check, value: Any, place: ValuePlace) -> list[SchemaFault]:  # noqa: ANN401
        if not isinstance(value, dict):
            return []
        return [
            SchemaFault(ValuePlace(place, name), "property_names", f"its name: {fault.message}")
            for name in value
            for fault in check.faults(node, name, place)
        ]

    return rule


def _required(argument: Any, _around: Around, _node_at: NodeAt) -> Rule:  # noqa: ANN401
    names = _names(argument)

    def rule(check: Check, value: Any, place: ValuePlace) -> list[SchemaFault]:  # noqa: ANN401
        check.spend(len(names))
        return _missing(names, value, place) if isinstance(value, dict) else []

    return rule


def _dependent_required(argument: Any, _around: Around, _node_at: NodeAt) -> Rule:  # noqa: ANN401
    if not isinstance(argument, dict):
        raise BadArgumentError("an object of lists of names")
    needed = {name: _names(names) for name, names in argument.items()}

    def rule(check: Check, value: Any, place: ValuePlace) -> list[SchemaFault]:  # noqa: ANN401
        found: list[SchemaFault] = []
        if isinstance(value, dict):
            for name, names in needed.items():
                check.spend(1 + len(names))
                if name in value:
                    found += _missing(names, value, place)
        return found

    return rule


def _dependent_schemas(argument: Any, _around: Around, node_at: NodeAt) -> Rule:  # noqa: ANN401
    nodes = {name: node_at("dependentSchemas", name) for name in argument}

    def rule(check: Check, value: Any, place: ValuePlace) -> list[SchemaFault]:  # noqa: ANN401
        found: list[SchemaFault] = []
        if isinstance(value, dict):
            for name, node in nodes.items():
                if name in value:
                    found += check.faults(node, value, place)
        return found

    return rule


def _prefix_items(argument: Any, _around: Around, node_at: NodeAt) -> Rule:  # noqa: ANN401
    nodes = [node_at("prefixItems", index) for index in range(len(argument))]

    def rule(check: Check, value: Any, place: ValuePlace) -> list[SchemaFault]:  # noqa: ANN401
        found: list[SchemaFault] = []
        if isinstance(value, list):
            for index, (node, item) in enumerate(zip(nodes, value, strict=False)):
                found += check.faults(node, item, ValuePlace(place, index))
        return found

    return rule


def _items(_argument: Any, around: Around, node_at: NodeAt) -> Rule:  # noqa: ANN401
    node, start = node_at("items"), len(around.get("prefixItems", ()))

    def rule(check: Check, value: Any, place: ValuePlace) -> list[SchemaFault]:  # noqa: ANN401
        found: list[SchemaFault] = []
        if isinstance(value, list):
            for index in range(start, len(value)):
                found += check.faults(node, value[index], ValuePlace(place, index))
        return found

    return rule


def _contains(_argument: Any, around: Around, node_at: NodeAt) -> Rule:  # noqa: ANN401
    node = node_at("contains")
    least = natural(around.get("minContains", 1))
    most = natural(around.get("maxContains", 2**53))

    def rule(check: Check, value: Any, place: ValuePlace) -> list[SchemaFault]:  # noqa: ANN401
        if not isinstance(value, list):
            return []
        count = sum(check.holds(node, item) for item in value)
        if least <= count <= most:
            return []
        told = f"at least {least}" if count < least else f"at most {most}"
        return [SchemaFault(place, "contains", f"expected {told} items of a certain form")]

    return rule


def _all_of(argument: Any, _around: Around, node_at: NodeAt) -> Rule:  # noqa: ANN401
    nodes = [node_at("allOf", index) for index in range(len(argument))]

    def rule(check: Check, value: Any, place: ValuePlace) -> list[SchemaFault]:  # noqa: ANN401
        return [fault for node in nodes for fault in check.faults(node, value, place)]

    return rule


def _any_of(argument: Any, _around: Around, node_at: NodeAt) -> Rule:  # noqa: ANN401
    nodes = [node_at("anyOf", index) for index in range(len(argument))]

    def rule(check: Check, value: Any, place: ValuePlace) -> list[SchemaFault]:  # noqa: ANN401
        tried: list[list[SchemaFault]] = []
        for node in nodes:
            found = check.faults(node, value, place)
            if not found:
                return []
            tried.append(found)
        return nearest(tried, place, "any_of")

    return rule


def _one_of(argument: Any, _around: Around, node_at: NodeAt) -> Rule:  # noqa: ANN401
    nodes = [node_at("oneOf", index) for index in range(len(argument))]

    def rule(check: Check, value: Any, place: ValuePlace) -> list[SchemaFault]:  # noqa: ANN401
        tried = [check.faults(node, value, place) for node in nodes]
        fitting = sum(not found for found in tried)
        if fitting == 1:
            return []
        if fitting == 0:
            return nearest(tried, place, "one_of")
        message = f"fits {fitting} of {len(nodes)} forms, expected exactly one"
        return [SchemaFault(place, "one_of", message)]

    return rule


def nearest(tried: list[list[SchemaFault]], place: ValuePlace, code: str) -> list[SchemaFault]:
    """Choose the form that was probably meant, and give its faults.

    That is the one whose type fits, whose constants fit, and with the fewest faults. When
    no form's type fits, there is one fault that names all of them.
    """
    if all(_is_other_type(found, place) for found in tried):
        told = " or ".join(dict.fromkeys(found[0].message for found in tried))
        return [SchemaFault(place, code, told)]
    return min(tried, key=lambda found: _distance(found, place))


def _is_other_type(found: list[SchemaFault], place: ValuePlace) -> bool:
    return any(fault.place is place and fault.code in ("type", "false_schema")
               for fault in found)  # fmt: skip


def _distance(found: list[SchemaFault], place: ValuePlace) -> tuple[bool, bool, int]:
    is_tagged_otherwise = any(
        fault.place.around is place and fault.code in ("const", "enum") for fault in found
    )
    return _is_other_type(found, place), is_tagged_otherwise, len(found)


def _not(_argument: Any, _around: Around, node_at: NodeAt) -> Rule:  # noqa: ANN401
    node = node_at("not")

    def rule(check: Check, value: Any, place: ValuePlace) -> list[SchemaFault]:  # noqa: ANN401
        if not check.holds(node, value):
            return []
        return [SchemaFault(place, "not", "has a form that is not allowed")]

    return rule


def _if(_argument: Any, around: Around, node_at: NodeAt) -> Rule:  # noqa: ANN401
    condition = node_at("if")
    then = node_at("then") if "then" in around else None
    otherwise = node_at("else") if "else" in around else None

    def rule(check: Check, value: Any, place: ValuePlace) -> list[SchemaFault]:  # noqa: ANN401
        node = then if check.holds(condition, value) else otherwise
        return [] if node is None else check.faults(node, value, place)

    return rule


def refer(pointer: str) -> Rule:
    """Apply the schema at a pointer of the document, looked up when it is needed."""
    return partial(_follow, pointer)


def _follow(pointer: str, check: Check, value: object, place: ValuePlace) -> list[SchemaFault]:
    return check.faults(check.nodes[pointer], value, place)


def _names(argument: object) -> list[str]:
    if not isinstance(argument, list) or not all(isinstance(name, str) for name in argument):
        raise BadArgumentError("a list of names")
    return list(dict.fromkeys(argument))


def _missing(names: list[str], value: dict[str, Any], place: ValuePlace) -> list[SchemaFault]:
    return [
        SchemaFault(ValuePlace(place, name), MISSING, "this property is required")
        for name in names
        if name not in value
    ]


# `$ref`, `then`, `else`, `minContains` and `maxContains` are read with their neighbours.
APPLICATORS: Mapping[str, Factory] = {
    "required": _required,
    "dependentRequired": _dependent_required,
    "properties": _properties,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional,
    "propertyNames": _property_names,
    "dependentSchemas": _dependent_schemas,
    "prefixItems": _prefix_items,
    "items": _items,
    "contains": _contains,
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
    "if": _if,
}

"""Arguments described by a JSON Schema that a server wrote.

The schema is somebody else's: it may not make us fetch anything, and its regular
expressions are left to the server, for one of them can take for ever.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import UnknownType, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend
from pydantic import JsonValue
from referencing import Registry
from referencing.exceptions import Unresolvable

from plans.core.execution import ToolArgumentsError
from plans.tools.definition import refuse_arguments

_MAX_FAULTS = 6


def _leave_to_server(
    _validator: Validator, _value: object, _instance: object, _schema: object
) -> Iterator[ValidationError]:
    return iter(())


def _unless_by_pattern(
    validator: Validator, value: object, instance: object, schema: Mapping[str, Any]
) -> Iterator[ValidationError]:
    if "patternProperties" not in schema:
        check = Draft202012Validator.VALIDATORS["additionalProperties"]
        yield from check(validator, value, instance, schema)


_Checker = extend(
    Draft202012Validator,
    {
        "pattern": _leave_to_server,
        "patternProperties": _leave_to_server,
        "unevaluatedProperties": _leave_to_server,
        "additionalProperties": _unless_by_pattern,
    },
)


@dataclass(frozen=True, slots=True)
class SchemaArguments:
    """Arguments as the server's schema has them; `digest` stands for the schema."""

    json_schema: Mapping[str, Any] = field(compare=False)
    digest: str

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema as it was discovered."""
        return dict(self.json_schema)

    def check(self, args: Mapping[str, JsonValue]) -> Mapping[str, JsonValue]:
        """Return the arguments as they are, or raise ToolArgumentsError."""
        checker = _Checker(self.json_schema, registry=Registry())
        try:
            faults = list(islice(checker.iter_errors(args), _MAX_FAULTS))
        except (Unresolvable, UnknownType, RecursionError):
            raise ToolArgumentsError("the server's schema cannot be followed") from None
        if faults:
            raise refuse_arguments([_describe(fault) for fault in faults])
        return args


def _describe(fault: ValidationError) -> tuple[list[str], str]:
    """Say what was expected; the message of the library repeats the value."""
    place = [str(part) for part in fault.absolute_path]
    if fault.validator == "required" and isinstance(fault.instance, Mapping):
        missing = [name for name in fault.validator_value if name not in fault.instance]
        return place, f"missing {', '.join(map(str, missing))}"
    expected = str(fault.validator_value)[:200]
    return place, f"does not fit {fault.validator} {expected}"

"""Workflow files: a goal, its steps and its check as YAML (docs/workflow-files.md).

The keys are those of POST /api/v1/goals, with `steps` in place of `plan`. Every refusal
names its key, line and column. Aliases, tags and repeated keys are refused.
"""

from dataclasses import dataclass
from typing import Any

import yaml

from agents.goals.requests import GoalRequest, RequestRefusedError, read_request
from failsoft.json_values import escape_pointer
from failsoft.plans.validation import validate_payload
from failsoft.plans.violations import Violation

MAX_BYTES = 256 * 1024
VERSION = "1"
OWN_KEYS = ("name", "version", "steps")
_KEYS = frozenset(GoalRequest.model_fields) - {"plan"} | set(OWN_KEYS)
_START = (1, 1)
Places = dict[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Located(Violation):
    """A refusal with its line and column, from 1."""

    line: int
    column: int


class WorkflowError(Exception):
    """the workflow file is refused; `errors` says where and why"""

    def __init__(self, errors: list[Located]) -> None:
        super().__init__("; ".join(f"line {e.line}: {e.message}" for e in errors))
        self.errors = errors


@dataclass(frozen=True, slots=True)
class Workflow:
    """A checked workflow: its name, and the body of POST /api/v1/goals."""

    name: str
    body: dict[str, Any]
    request: GoalRequest


class _Loader(yaml.SafeLoader):
    """Plain values only: a date stays a text."""

    yaml_implicit_resolvers = {
        first: [resolver for resolver in resolvers if not resolver[0].endswith(":timestamp")]
        for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }


def read_workflow(text: str) -> Workflow:
    """Read and check a workflow file; WorkflowError names everything that is refused."""
    if len(text.encode("utf-8", "replace")) > MAX_BYTES:
        raise WorkflowError([Located("", "too_large", f"at most {MAX_BYTES} bytes", 1, 1)])
    places: Places = {}
    document = _load(text, places)
    errors = _check_keys(document)
    request = None
    if not errors:
        body = {key: value for key, value in document.items() if key not in OWN_KEYS}
        if "steps" in document:
            body["plan"] = {"steps": document["steps"]}
        try:
            request = read_request(GoalRequest, body)
        except RequestRefusedError as error:
            errors = error.errors
        errors += validate_payload(body["plan"]) if "plan" in body else []
    if errors or request is None:
        raise WorkflowError([_locate(error, places) for error in errors])
    return Workflow(str(document.get("name") or "workflow"), body, request)


def _load(text: str, places: Places) -> dict[str, Any]:
    try:
        node = yaml.compose(text, _Loader)
        _refuse_aliases(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = (mark.line + 1, mark.column + 1) if mark else _START
        message = error.problem or "this is not YAML"
        raise WorkflowError([Located("", "not_yaml", message, *place)]) from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        message = "nested too deep" if isinstance(error, RecursionError) else str(error)
        raise WorkflowError([Located("", "not_yaml", message[:300], 1, 1)]) from None
    if not isinstance(node, yaml.MappingNode):
        raise WorkflowError([Located("", "object_type", "expected keys and values", 1, 1)])
    value = _construct(node, "", places)
    assert isinstance(value, dict)  # noqa: S101 - a mapping makes a dict
    return value


def _refuse_aliases(text: str) -> None:
    for event in yaml.parse(text, _Loader):
        if isinstance(event, yaml.AliasEvent):
            mark = event.start_mark
            assert mark is not None  # noqa: S101 - events of a text have a place
            message = "aliases are not taken; write the value out"
            raise WorkflowError([Located("", "alias", message, mark.line + 1, mark.column + 1)])


def _construct(node: yaml.Node, path: str, places: Places) -> Any:  # noqa: ANN401 - any JSON
    """Return the JSON value of a node, and note the position of each part."""
    position = node.start_mark.line + 1, node.start_mark.column + 1
    places.setdefault(path, position)
    if isinstance(node, yaml.SequenceNode):
        return [
            _construct(item, f"{path}/{index}", places) for index, item in enumerate(node.value)
        ]
    if isinstance(node, yaml.MappingNode):
        return _construct_mapping(node, path, places)
    loader = _Loader("")
    try:
        value = loader.construct_object(node)
    except yaml.YAMLError:
        message = f"expected a plain value, not the tag {node.tag[:80]}"
        raise WorkflowError([Located(path, "not_plain", message, *position)]) from None
    finally:
        loader.dispose()
    if value is not None and not isinstance(value, str | bool | int | float):
        message = "expected a text, a number, true, false or null"
        raise WorkflowError([Located(path, "not_plain", message, *position)])
    return value


def _construct_mapping(node: yaml.MappingNode, path: str, places: Places) -> dict[str, Any]:
    mapping: dict[str, Any] = {}
    for key_node, value_node in node.value:
        position = key_node.start_mark.line + 1, key_node.start_mark.column + 1
        key = key_node.value if isinstance(key_node, yaml.ScalarNode) else None
        if not isinstance(key, str):
            raise WorkflowError([Located(path, "key_type", "expected a text as key", *position)])
        pointer = f"{path}/{escape_pointer(key)}"
        if key in mapping:
            message = f"the key {key} is repeated"
            raise WorkflowError([Located(pointer, "duplicate_key", message, *position)])
        places[pointer] = position
        mapping[key] = _construct(value_node, pointer, places)
    return mapping


def _check_keys(document: dict[str, Any]) -> list[Violation]:
    errors = [
        Violation(f"/{escape_pointer(key)}", "unknown_key", f"there is no key {key}")
        for key in document
        if key not in _KEYS
    ]
    if str(document.get("version", VERSION)) != VERSION:
        errors.append(Violation("/version", "unknown_version", f"expected {VERSION}"))
    name = document.get("name")
    if name is not None and not (isinstance(name, str) and 0 < len(name) <= 200):
        errors.append(Violation("/name", "name_type", "expected 1 to 200 characters"))
    if "steps" in document and not isinstance(document["steps"], list):
        errors.append(Violation("/steps", "steps_type", "expected a list of steps"))
    return errors


def _locate(error: Violation, places: Places) -> Located:
    # `steps` of the file is below `plan` in the body.
    inner = error.path.removeprefix("/plan/")
    path = error.path if inner == error.path else f"/{inner}"
    pointer = path
    while pointer and pointer not in places:
        pointer = pointer.rpartition("/")[0]
    line, column = places.get(pointer, _START)
    message = error.message
    if error.code == "extra_forbidden":
        message = f"there is no key {path.rpartition('/')[2]} here"
    return Located(path, error.code, message, line, column)

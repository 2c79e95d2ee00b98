"""The golden cases of tests/contract, run through our validators and executor.

The files are the contract in a form any language can check; whoever changes what they
say bumps CONTRACT_VERSION (S2-41, S2-45, S2-46, S2-47).
"""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from failsoft.plans.contract import CONTRACT_VERSION
from failsoft.plans.execution import CallContext, Seams, ToolNotFoundError, execute
from failsoft.plans.results import validate_results
from failsoft.plans.validation import validate_payload
from failsoft.plans.violations import Violation

_FOLDER = Path(__file__).resolve().parents[2] / "contract"
_DOCUMENTS = {
    path.stem: json.loads(path.read_text(encoding="utf-8"))
    for path in sorted(_FOLDER.glob("*.json"))
}


def _cases(name: str) -> list[Any]:
    return [pytest.param(case, id=case["name"]) for case in _DOCUMENTS[name]["cases"]]


def _pairs(violations: list[Violation]) -> list[list[str]]:
    return sorted([violation.path, violation.code] for violation in violations)


@pytest.mark.parametrize("case", _cases("payloads"))
def test_s2_33_payload_case(case: dict[str, Any]) -> None:
    violations = validate_payload(
        case["payload"], strict=case.get("strict", False), known_tools=case.get("known_tools")
    )
    assert _pairs(violations) == sorted(case["violations"])


@pytest.mark.parametrize("case", _cases("executions"))
def test_s2_47_execution_case_to_the_byte(case: dict[str, Any]) -> None:
    results = execute(case["payload"], _scripted(case))
    assert _dump(results) == _dump(case["results"])


@pytest.mark.parametrize("case", _cases("executions"))
def test_s2_1_executed_results_keep_the_contract(case: dict[str, Any]) -> None:
    assert validate_results(case["results"]) == []


@pytest.mark.parametrize("case", _cases("results"))
def test_s2_34_results_case(case: dict[str, Any]) -> None:
    document = case.get("whole", _changed(_DOCUMENTS["results"]["base"], case))
    assert _pairs(validate_results(document)) == sorted(case["violations"])


def test_s2_45_contract_version_is_pinned_with_the_cases() -> None:
    versions = {name: doc["contract_version"] for name, doc in _DOCUMENTS.items()}
    assert versions == dict.fromkeys(["executions", "payloads", "results"], CONTRACT_VERSION)


def _dump(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)


def _scripted(case: dict[str, Any]) -> Seams:
    """The two tools that the cases speak of."""
    stop = case.get("stop")
    calls = 0

    def call_tool(name: str, args: dict[str, Any], context: CallContext) -> object:
        nonlocal calls
        calls += 1
        if name == "echo":
            return args
        if name == "fail":
            raise RuntimeError("failed on purpose")
        raise ToolNotFoundError(name)

    def read_stop() -> str | None:
        return stop["reason"] if stop and calls >= stop["after_calls"] else None

    strict = case.get("strict_degraded", False)
    return Seams(call_tool, read_stop, strict_degraded=strict)


def _changed(base: Any, case: dict[str, Any]) -> Any:
    document = copy.deepcopy(base)
    for pointer, value in case.get("set", {}).items():
        holder, key = _find(document, pointer)
        holder[key] = value
    for pointer in case.get("drop", []):
        holder, key = _find(document, pointer)
        del holder[key]
    return document


def _find(document: Any, pointer: str) -> tuple[Any, Any]:
    *path, last = pointer.split("/")[1:]
    for part in path:
        document = document[int(part) if isinstance(document, list) else part]
    return document, int(last) if isinstance(document, list) else last

"""The contract as something others build upon: schemas, versions, changelog (S2-45..49)."""

import copy
import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from failsoft.plans.contract import (
    CONTRACT_VERSION,
    MAX_DEPENDENCIES,
    MAX_STEPS,
    META_STEP_ID,
    NAMES,
    TaskStatus,
    contract_schema,
)
from failsoft.plans.results import COUNTS, validate_results
from failsoft.plans.validation import validate_payload
from tests.failsoft.plans.test_contract_cases import _changed

ROOT = Path(__file__).resolve().parents[3]
CASES = ROOT / "tests/contract"
DOCS = ROOT / "docs/contract"
BUMP = (
    "The meaning of the contract changed. Bump CONTRACT_VERSION in failsoft/plans/contract.py, "
    "say what changed in docs/contract/CHANGELOG.md, and pin the new digest in "
    "tests/contract/versions/digests.json (tests/contract/README.md)."
)


def read(name: str) -> Any:
    return json.loads((CASES / name).read_text(encoding="utf-8"))


def meaning() -> str:
    """A digest of what the contract accepts, refuses and gives back."""
    parts = [[name, contract_schema(name)] for name in NAMES]
    for name in ("payloads", "results", "executions"):
        document = read(f"{name}.json")
        parts.append([name, [document.get("base"), document["cases"]]])
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True)
    plain = text.replace(f'"x-contract-version": "{CONTRACT_VERSION}"', "")
    return hashlib.sha256(plain.encode()).hexdigest()


def test_s2_45_s2_47_meaning_does_not_change_without_a_version() -> None:
    pinned = read("versions/digests.json")

    assert CONTRACT_VERSION in pinned, BUMP
    assert pinned[CONTRACT_VERSION] == meaning(), BUMP


def test_s2_45_versions_are_semantic_and_never_used_twice() -> None:
    pinned = read("versions/digests.json")

    assert all(re.fullmatch(r"\d+\.\d+\.\d+", version) for version in pinned)
    assert len(set(pinned.values())) == len(pinned)
    assert list(pinned)[-1] == CONTRACT_VERSION


def test_s2_46_every_version_has_its_entry_in_the_changelog() -> None:
    text = (DOCS / "CHANGELOG.md").read_text(encoding="utf-8")

    assert re.findall(r"^## (\S+)", text, re.MULTILINE) == [
        *reversed(read("versions/digests.json"))
    ]


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_valid_and_of_the_version_in_force(name: str) -> None:
    schema = contract_schema(name)

    Draft202012Validator.check_schema(schema)
    assert schema["x-contract-version"] == CONTRACT_VERSION


def test_the_schemas_have_the_bounds_of_the_validators() -> None:
    payload, results = map(contract_schema, NAMES)
    step, summary = payload["$defs"]["step"]["properties"], results["$defs"]["summary"]
    counts = summary["properties"]["stats"]

    assert payload["properties"]["steps"]["maxItems"] == MAX_STEPS
    assert step["dependencies"]["maxItems"] == MAX_DEPENDENCIES
    assert step["step_id"]["not"] == {"const": META_STEP_ID}
    assert summary["properties"]["task_status"]["enum"] == list(TaskStatus)
    assert tuple(counts["required"]) == tuple(counts["properties"]) == COUNTS


def test_s2_33_the_schema_accepts_every_payload_the_validator_accepts() -> None:
    schema = Draft202012Validator(contract_schema("payload"))
    for case in read("payloads.json")["cases"]:
        if not validate_payload(case["payload"]):
            assert list(schema.iter_errors(case["payload"])) == [], case["name"]


def test_s2_34_the_schema_accepts_every_result_the_validator_accepts() -> None:
    schema = Draft202012Validator(contract_schema("results"))
    for document in results_of_cases():
        if not validate_results(document):
            assert list(schema.iter_errors(document)) == []


def test_the_schemas_refuse_what_shape_alone_can_tell() -> None:
    payload = Draft202012Validator(contract_schema("payload"))
    refused = [
        case["name"]
        for case in read("payloads.json")["cases"]
        if list(payload.iter_errors(case["payload"]))
    ]
    results = Draft202012Validator(contract_schema("results"))
    documents = [item for item in results_of_cases() if list(results.iter_errors(item))]

    assert {"steps are required", "a step needs an id"} <= set(refused)
    assert len(refused) > 20
    assert len(documents) > 25


def test_s2_49_a_violation_is_structured() -> None:
    (violation,) = validate_payload({})

    assert set(violation.as_dict()) == {"path", "code", "message"}


def test_s2_48_the_contract_is_documented_in_production_tone() -> None:
    path = ROOT / "docs/architecture/plan-execution-contract.md"
    text = path.read_text(encoding="utf-8")

    assert f"Version {CONTRACT_VERSION}" in text
    assert not re.search(r"\b(day \d|lesson|tutorial|exercise|learning)\b", text, re.IGNORECASE)


def test_every_code_of_the_golden_cases_is_documented() -> None:
    path = ROOT / "docs/architecture/plan-execution-contract.md"
    text = path.read_text(encoding="utf-8")
    for name in ("payloads.json", "results.json"):
        for case in read(name)["cases"]:
            for _, code in case["violations"]:
                assert f"`{code}`" in text, code


def results_of_cases() -> list[Any]:
    document = read("results.json")
    base = document["base"]
    changed = [case.get("whole", _changed(copy.deepcopy(base), case)) for case in document["cases"]]
    return [*changed, *(case["results"] for case in read("executions.json")["cases"])]

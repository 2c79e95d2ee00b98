"""The golden decisions of tests/contract/completion, as typed rows."""

import json
from pathlib import Path
from typing import NamedTuple

_FILE = Path(__file__).resolve().parents[2] / "contract/completion/decisions.json"
_DOCUMENT = json.loads(_FILE.read_text(encoding="utf-8"))


class Case(NamedTuple):
    """What a check left, and the decision, source, match and cause that follow."""

    name: str
    file: str | None
    output: str
    decision: str
    source: str
    check_id_match: bool | None
    cause: str | None


CHECK_ID = _DOCUMENT["check_id"]
GROUPS = {name: [Case(**row) for row in rows] for name, rows in _DOCUMENT["groups"].items()}
CASES = [case for group in GROUPS.values() for case in group]

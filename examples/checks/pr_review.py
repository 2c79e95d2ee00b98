"""The reviewer of examples/agent-pr-loop.yaml: complete once every remark was worked on.

A completion check of kind command. What is to be checked comes as JSON on standard input;
the decision goes to the decision file, with the id this very check was given.
"""

import json
import os
import sys
from pathlib import Path

REMARKS = {
    "missing-tests": "add tests for the change",
    "missing-changelog": "add a line to the changelog",
}


def main() -> None:
    """Review what the steps of this iteration wrote."""
    told = json.load(sys.stdin)
    written = json.dumps(told["results"])
    open_remarks = {key: text for key, text in REMARKS.items() if text not in written}
    decision = {
        "decision": "incomplete" if open_remarks else "complete",
        "check_id": os.environ["FAILSOFT_COMPLETION_CHECK_ID"],
        "reasons": list(open_remarks.values()) or ["every remark was worked on"],
        "fingerprints": list(open_remarks),
    }
    target = os.environ.get("FAILSOFT_DECISION_FILE")
    if target:
        Path(target).write_text(json.dumps(decision), encoding="utf-8")
    else:
        print(json.dumps(decision))  # noqa: T201 - that is how a check decides


if __name__ == "__main__":
    main()

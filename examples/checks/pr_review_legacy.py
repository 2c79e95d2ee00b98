"""The reviewer of examples/agent-pr-loop-legacy.yaml: PASS or FAIL as text, and why not.

PASS from the second iteration on: text gives no reasons that a next iteration could act on.
"""

import os
from pathlib import Path


def main() -> None:
    """Write the verdict."""
    iteration = int(os.environ["FAILSOFT_ITERATION"])
    verdict = "PASS" if iteration > 1 else "FAIL"
    target = Path(os.environ["FAILSOFT_DECISION_FILE"])
    target.write_text(f"{verdict}\n", encoding="utf-8")


if __name__ == "__main__":
    main()

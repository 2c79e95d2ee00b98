"""`python -m bench.verdict`: 120 incidents from a seed, and what the verdict makes of them."""

import argparse
import sys
from collections import Counter

from bench.incidents import KINDS, Incident, make_incident
from diagnostics.core.verdict.cause import Finding, find_cause
from diagnostics.core.verdict.suspects import Cause

ABSTAINS = (Cause.MIXED, Cause.NOT_ENOUGH_DATA)


def judge(incident: Incident, found: Finding) -> str:
    """Say whether a finding is right, abstains, or is confidently wrong."""
    if found.cause is incident.cause and (
        not incident.value or found.value == incident.value
    ):
        return "right"
    return "abstains" if found.cause in ABSTAINS else "wrong"


def main() -> int:
    """Print the confusion matrix and the shares."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.verdict", description=__doc__
    )
    parser.add_argument("--each", type=int, default=12, help="incidents of each kind")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    total: Counter[str] = Counter()
    for kind in KINDS:
        told, judged = Counter[str](), Counter[str]()
        for number in range(options.each):
            incident = make_incident(kind, options.seed * 1_000 + number)
            found = find_cause(incident.cells, incident.before)
            told[found.cause.value if found.cause else "ok"] += 1
            judged[judge(incident, found)] += 1
        total += judged
        said = ", ".join(f"{name} {times}" for name, times in told.most_common())
        sys.stdout.write(f"{kind:16} right {judged['right']:3d}   {said}\n")
    made = sum(total.values())
    sys.stdout.write(
        f"right {total['right'] / made:.1%}, abstains {total['abstains'] / made:.1%}, "
        f"confidently wrong {total['wrong'] / made:.1%} of {made}\n"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())

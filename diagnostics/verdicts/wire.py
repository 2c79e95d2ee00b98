"""A verdict as programs read it, and as an incident keeps it."""

from typing import Any

from diagnostics.verdicts.judging import Verdict

_WHO = ("environment", "node", "provider", "model")


def describe(verdict: Verdict) -> dict[str, Any]:
    """Give a verdict in the wire format."""
    finding, rate, who = verdict.finding, verdict.rate, verdict.who
    low, high = rate.interval if rate else (None, None)
    return {
        "state": verdict.state,
        "since": verdict.since,
        "since_low": verdict.since_low,
        "since_high": verdict.since_high,
        **(who._asdict() if who else dict.fromkeys(_WHO)),
        "cause": finding.cause,
        "cause_value": finding.value or None,
        "top_kind": finding.top_kind or None,
        "rate": rate.share if rate else None,
        "low": low,
        "high": high,
        "baseline": rate.baseline if rate else None,
        "runs": rate.total if rate else 0,
        "counted": f"{rate.noun}s" if rate else None,
        "excess": [
            {
                "dimension": share.dimension,
                "value": share.value,
                "share": share.share,
                "traffic_share": share.traffic_share,
                "lift": share.lift,
            }
            for share in finding.shares
        ],
        "advice": [{"text": one.text, "evidence": one.evidence} for one in verdict.advice],
        "sentence": verdict.sentence,
    }

"""Rules, looks and incidents in the words of the pages."""

from collections.abc import Mapping

from diagnostics.alerting.signals import RATIOS, Slice
from diagnostics.figures import count, percent
from diagnostics.web.charts.marks import Tone

DETECTORS: Mapping[str, tuple[str, str]] = {
    "change": (
        "change",
        "fires when it gets worse than was usual in the last 14 days, beyond chance",
    ),
    "threshold": (
        "threshold",
        "fires when the share is surely above the limit: at least 20 calls, 5 of them bad, and"
        " the lower bound of the interval above it",
    ),
    "count": ("count", "fires when there are this many within the time"),
    "absent": ("absence", "fires when nothing has come for this long"),
    "burn": (
        "burn rate",
        "fires when the budget of failures is used up too fast, now and over hours",
    ),
}
"""What a detector is called, and how it judges."""
STATES: Mapping[str, tuple[Tone, str]] = {
    "open": ("bad", "open"),
    "acknowledged": ("warn", "acknowledged"),
    "resolved": ("good", "resolved"),
}
SEVERITIES: Mapping[str, tuple[Tone, str]] = {
    "critical": ("bad", "critical"),
    "warning": ("warn", "warning"),
    "info": ("quiet", "info"),
}
LOOKS: Mapping[str, tuple[Tone, str]] = {
    "quiet": ("good", "quiet"),
    "fires": ("bad", "fires"),
    "clears": ("good", "clears"),
    "no_data": ("quiet", "no calls"),
}
BECAME: Mapping[str, tuple[Tone, str]] = {
    "fired": ("bad", "Fired"),
    "joined": ("bad", "Another slice joined"),
    "worsened": ("bad", "Got worse"),
    "acknowledged": ("warn", "Acknowledged"),
    "slice_cleared": ("good", "A slice is over"),
    "cleared": ("good", "Over"),
    "resolved": ("good", "Resolved"),
}
TOLD: Mapping[str, tuple[Tone, str]] = {
    "queued": ("live", "waiting"),
    "sent": ("good", "sent"),
    "failed": ("bad", "given up"),
    "suppressed": ("quiet", "kept back"),
    "digested": ("quiet", "in a digest"),
}


def slice_words(values: Slice) -> str:
    """Name a slice: `acme/m-1, plan in prod`."""
    model = "/".join(values[name] or "unknown" for name in ("provider", "model") if name in values)
    node = (values.get("node") or "").replace("_", " ")
    place = f"in {values['environment'] or 'no environment'}" if "environment" in values else ""
    rest = " ".join(part for part in (node, place) if part)
    return ", ".join(part for part in (model, rest) if part) or "all calls"


def look_words(signal: str, k: int, n: int, value: float, bound: float) -> str:
    """Say what one look found, and against what it was held."""
    told = f"{count(k)} of {count(n)}" if n else count(k)
    if signal not in RATIOS:
        return f"{told}; bound {bound:.3g}" if bound else told
    if bound > 1:
        share = f", {percent(k / n, 0)}" if n else ""
        return f"{told}{share}; evidence {value:.1f}, alarm at {bound:.1f}"
    told += f", {percent(value)}"
    return f"{told}; bound {percent(bound)}" if bound else told

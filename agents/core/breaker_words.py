"""What the state of a breaker means, in words and tones of the console."""

from collections.abc import Mapping

from agents.core.badges import Badge
from agents.core.breaker import Kind, State
from diagnostics.core.charts.mark import Tone

TONES: Mapping[State, Tone] = {
    State.CLOSED: "good",
    State.OPEN: "bad",
    State.HALF_OPEN: "warn",
    State.ISOLATED: "bad",
}
STATES: Mapping[State, str] = {
    State.CLOSED: "closed",
    State.OPEN: "open",
    State.HALF_OPEN: "half open",
    State.ISOLATED: "isolated",
}
# Worst first.
ORDER = (State.ISOLATED, State.OPEN, State.HALF_OPEN, State.CLOSED)
CAUSES: Mapping[str, str] = {
    "faults_in_a_row": "too many faults in a row",
    "fault_rate": "too many faults in a minute",
    "cooled_down": "the cool-down ended",
    "probe_failed": "the probe failed",
    "probes_succeeded": "two probes were good",
    "by_hand": "by hand",
}
WATCHED: Mapping[Kind, str] = {
    Kind.TRANSPORT: "calls that get an answer",
    Kind.QUALITY: "goals that get a usable answer",
}
NOTHING_PASSES = "No call is made."
MEANINGS: Mapping[tuple[Kind, State], str] = {
    (Kind.TRANSPORT, State.CLOSED): "Every call is made.",
    (Kind.TRANSPORT, State.OPEN): f"{NOTHING_PASSES} After the cool-down one probe is.",
    (Kind.TRANSPORT, State.HALF_OPEN): "One probe at a time; two good ones close it.",
    (Kind.TRANSPORT, State.ISOLATED): f"{NOTHING_PASSES} Somebody has to close it.",
    (Kind.QUALITY, State.CLOSED): "Goals are retried as they ask for.",
    (
        Kind.QUALITY,
        State.HALF_OPEN,
    ): "One goal at a time has all its retries, as a probe.",
    (Kind.QUALITY, State.ISOLATED): "Nothing is retried. Somebody has to close it.",
    (
        Kind.QUALITY,
        State.OPEN,
    ): "One attempt a goal. After the cool-down one goal has retries.",
}


def breaker_badge(state: State) -> Badge:
    """Tone and word of a state."""
    return TONES[state], STATES[state]


def describe_state(kind: Kind, state: State, *, denies: bool) -> str:
    """What a state does to goals; `denies` is the policy that lets no attempt through."""
    if kind is Kind.QUALITY and denies and state in (State.OPEN, State.ISOLATED):
        return NOTHING_PASSES
    return MEANINGS[kind, state]


def describe_cause(cause: str | None) -> str:
    """Why a breaker is where it is."""
    return CAUSES.get(cause or "", "")

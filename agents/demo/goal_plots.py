"""The goals that are told in full: when, by which model, and cycle by cycle."""

from dataclasses import dataclass

GOOD, BAD, LOST = "good", "bad", "lost"
"""What a call brings: a valid answer, an invalid one, none at all."""


@dataclass(frozen=True, slots=True)
class DemoCycle:
    """One cycle: its calls, and what happens to the run of the plan they brought.

    `failing_step` is the 1-based step whose tool fails; `cancelled_after` the number of
    steps after which somebody cancels.
    """

    calls: tuple[str, ...]
    failing_step: int | None = None
    cancelled_after: int | None = None


@dataclass(frozen=True, slots=True)
class Plot:
    """A goal: how long ago, of which line (an index of `LINES`), and its cycles."""

    hours_ago: float
    line: int
    turns: tuple[DemoCycle, ...]
    environment: str = "prod"


AT_ONCE = (DemoCycle((GOOD,)),)
AFTER_REPAIR = (DemoCycle((BAD, GOOD)),)
NEVER = (DemoCycle((BAD, BAD)),)
NO_ANSWER = (DemoCycle((LOST,)),)
SECOND_CYCLE = (DemoCycle((GOOD,), failing_step=2), DemoCycle((GOOD,)))
SECOND_CYCLE_REPAIRED = (DemoCycle((BAD, GOOD), failing_step=1), DemoCycle((BAD, GOOD)))
SECOND_CYCLE_LOST_ITS_PLAN = (DemoCycle((GOOD,), failing_step=3), DemoCycle((BAD, BAD)))
NO_CYCLE_LEFT = (
    DemoCycle((GOOD,), failing_step=2),
    DemoCycle((GOOD,), failing_step=2),
    DemoCycle((BAD, GOOD), failing_step=2),
)
CALLED_OFF = (DemoCycle((GOOD,), cancelled_after=1),)

HAIKU, HAIKU_STEP, SONNET, SONNET_STEP, MINI, MINI_STEP = range(6)
GPT, GPT_STEP, SMALL, SMALL_STEP, LARGE, LARGE_STEP = range(6, 12)

PLOTS = (
    # The incident: the same model, every prompt, mostly cut off.
    Plot(0.15, HAIKU, NEVER),
    Plot(0.5, HAIKU, AFTER_REPAIR),
    Plot(0.9, HAIKU, NEVER),
    Plot(1.4, HAIKU_STEP, NEVER),
    Plot(2.1, HAIKU, AT_ONCE),
    Plot(2.7, HAIKU, NEVER),
    Plot(3.6, HAIKU, SECOND_CYCLE_LOST_ITS_PLAN),
    Plot(4.4, HAIKU, AFTER_REPAIR, "staging"),
    Plot(5.2, HAIKU, NEVER),
    # Beside it the others carry on.
    Plot(0.3, SONNET, AT_ONCE),
    Plot(0.7, MINI, AT_ONCE),
    Plot(1.1, GPT, AT_ONCE),
    Plot(1.9, LARGE, SECOND_CYCLE),
    Plot(2.4, SMALL, AFTER_REPAIR),
    Plot(3.1, MINI, AFTER_REPAIR),
    Plot(4.0, SONNET, SECOND_CYCLE),
    Plot(4.9, GPT, CALLED_OFF),
    # The days before.
    Plot(7.5, HAIKU, AT_ONCE),
    Plot(11.0, SMALL, NEVER),
    Plot(16.2, HAIKU, AT_ONCE),
    Plot(20.5, MINI, NO_ANSWER),
    Plot(26.0, LARGE, AT_ONCE),
    Plot(31.3, SMALL, NO_CYCLE_LEFT),
    Plot(44.8, GPT, AT_ONCE),
    Plot(52.1, SONNET, AFTER_REPAIR, "staging"),
    Plot(70.0, HAIKU, SECOND_CYCLE_REPAIRED),
    Plot(97.4, MINI_STEP, NEVER),
    Plot(120.0, LARGE, AFTER_REPAIR),
    Plot(150.3, SONNET, CALLED_OFF),
    # Last week's incident: a prompt that forgot to say that a step needs a tool.
    Plot(197.0, MINI, NEVER),
    Plot(203.5, MINI, AFTER_REPAIR),
    Plot(209.8, MINI, NEVER),
    Plot(216.4, MINI, AFTER_REPAIR),
    Plot(240.0, GPT, AT_ONCE),
    Plot(288.6, HAIKU, AT_ONCE),
    Plot(310.2, SMALL, NO_ANSWER, "staging"),
)

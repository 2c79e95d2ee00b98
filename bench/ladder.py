"""What the ladder costs where no retry is needed: against the bare call of the same provider.

    python -m bench.ladder [--quick]

A provider answers at once, or after a set time, with a good plan. The bare call reads it with
json.loads; the ladder builds the prompt, plans the attempt and judges the plan too (S1-61, S1-84).
"""

import argparse
import json
from time import perf_counter

from bench.database import say
from bench.growth import seconds_of
from bench.model import Planner
from failsoft.retry.engine import attempts
from tests.scripted import ScriptedProvider

PLAN = '{"steps": [{"step_id": "step_1", "tool": {"name": "echo", "args": {"text": "hi"}}}]}'
GOAL = "Echo the word hi."


def measure(delay_seconds: float, rounds: int) -> tuple[float, float]:
    """Seconds of the bare call and of the ladder, each the median of `rounds`."""
    reply = {"text": PLAN, "delay_seconds": delay_seconds, "repeat": True}
    provider = ScriptedProvider([reply])
    planner = Planner(provider, "scripted", retries=2)
    request = planner.request_of(GOAL, next(attempts(planner.policy)))

    def call_bare() -> object:
        return json.loads(provider.complete(request).text)

    bare = seconds_of(call_bare, rounds, clock=perf_counter)
    return bare, seconds_of(lambda: planner.climb(GOAL), rounds, clock=perf_counter)


def main() -> None:
    """Print the cost beside providers of several speeds."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="leave out the slow one")
    delays = (0.0, 0.05) if parser.parse_args().quick else (0.0, 0.05, 0.5)
    for delay_seconds in delays:
        bare, ladder = measure(delay_seconds, 10 if delay_seconds else 200)
        say(
            f"provider {delay_seconds * 1000:4.0f} ms: bare {bare * 1000:7.2f} ms, "
            f"ladder {ladder * 1000:7.2f} ms, ratio {ladder / bare:.2f}, "
            f"more {(ladder - bare) * 1000:.2f} ms"
        )


if __name__ == "__main__":
    main()

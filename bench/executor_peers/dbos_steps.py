"""DBOS: a workflow of N steps, each recorded in PostgreSQL."""

import sys
import time

from dbos import DBOS


@DBOS.step()  # type: ignore[untyped-decorator] # a peer, not installed here
def step(number: int) -> int:
    return number


@DBOS.workflow()  # type: ignore[untyped-decorator]
def workflow(steps: int) -> int:
    """Take the steps one after the other."""
    return sum(step(number) for number in range(steps))


def main(url: str, steps: int) -> None:
    """Print the seconds that N steps took."""
    DBOS(
        config={
            "name": "bench",
            "system_database_url": url,
            "log_level": "ERROR",
            "run_admin_server": False,
        }
    )
    DBOS.launch()
    workflow(10)
    begun = time.perf_counter()
    workflow(steps)
    taken = time.perf_counter() - begun
    DBOS.destroy()
    print(taken)  # noqa: T201 - read by the benchmark


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

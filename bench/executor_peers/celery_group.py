"""A bare Celery group of no-ops on the same broker, which also keeps its results."""

import os
import sys
import time

from celery import Celery, group

URL = os.environ.get("BENCH_BROKER_URL", "")
app = Celery("celery_group", broker=URL, backend=URL.replace("redis+socket", "socket"))
app.conf.update(
    broker_transport_options={"visibility_timeout": 1800},
    task_acks_late=True,
    worker_prefetch_multiplier=1,
    worker_enable_remote_control=False,
    task_default_queue="bench",
)
if URL.startswith("redis+socket"):
    app.conf.update(result_backend=URL)


@app.task(name="noop")
def noop(number: int) -> int:
    return number


def main(steps: int) -> None:
    """Print the seconds from sending N no-ops to the last result."""
    for count in (10, steps):
        begun = time.perf_counter()
        found = group(noop.s(number) for number in range(count)).apply_async()
        found.get(timeout=120)
        taken = time.perf_counter() - begun
    print(taken)  # noqa: T201 - read by the benchmark


if __name__ == "__main__":
    main(int(sys.argv[1]))

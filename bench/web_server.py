"""granian with ASGI or WSGI, or gunicorn? CPU time and latency, interleaved, on real pages.

    python -m bench.web_server [--quick] [--rounds 5] [--requests 400]

Starts all on loopback, with one process and four threads each, against a throw-away
PostgreSQL, and asks them in turn with 8 clients. CPU time is what counts: it does not
change with what else the machine does, as wall time does.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from http.client import HTTPConnection

from bench.idle import usage_of
from bench.ingest.measuring import cpu_seconds
from bench.ingest.servers import ROOT, start, wsgi_words
from config.local.parts import web_arguments
from tests import embedded

CLIENTS = 8
PAGES = ("/accounts/login/", "/no-such-page", "/healthz")
PORTS = {"granian ASGI": 18431, "granian WSGI": 18432, "gunicorn": 18433}
SERVERS = {
    "granian ASGI": web_arguments(PORTS["granian ASGI"]),
    "granian WSGI": wsgi_words(PORTS["granian WSGI"], "config.wsgi:application"),
    "gunicorn": [
        *("-m", "gunicorn", "--workers", "1", "--threads", "4", "--log-level", "error"),
        *("--bind", f"127.0.0.1:{PORTS['gunicorn']}", "--keep-alive", "5"),
        "config.wsgi:application",
    ],
}


def ask(port: int, page: str, count: int) -> list[float]:
    """Send `count` requests on one connection; return each one's milliseconds."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    times = []
    for _ in range(count):
        begin = time.perf_counter()
        connection.request("GET", page)
        answer = connection.getresponse()
        answer.read()
        times.append((time.perf_counter() - begin) * 1000)
        if answer.status >= 500:
            raise RuntimeError(f"{page}: {answer.status}")
    connection.close()
    return times


def ask_together(port: int, page: str, requests: int) -> list[float]:
    """Share `requests` among the clients."""
    with ThreadPoolExecutor(CLIENTS) as pool:
        jobs = [pool.submit(ask, port, page, requests // CLIENTS) for _ in range(CLIENTS)]
        return [ms for job in jobs for ms in job.result()]


def main() -> None:
    """Measure and print one line a server and page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--quick", action="store_true", help="one short round")
    options = parser.parse_args()
    if options.quick:
        options.rounds, options.requests = 1, 80
    with ExitStack() as stack:
        embedded.start_for_session(stack)
        subprocess.run(
            [sys.executable, "manage.py", "migrate", "--verbosity", "0"], cwd=ROOT, check=True
        )
        env = {**os.environ, "FAILSOFT_LOG_LEVEL": "ERROR"}
        groups = {
            name: start([sys.executable, *SERVERS[name]], env, port, "/healthz", stack)
            for name, port in PORTS.items()
        }
        for page in PAGES:
            used: dict[str, list[float]] = {name: [] for name in PORTS}
            times: dict[str, list[float]] = {name: [] for name in PORTS}
            for _ in range(options.rounds):
                for name, port in PORTS.items():
                    before = cpu_seconds([groups[name]])
                    times[name] += ask_together(port, page, options.requests)
                    used[name].append(cpu_seconds([groups[name]]) - before)
            for name in PORTS:
                cpu = sum(used[name]) * 1000 / (options.rounds * options.requests)
                tail = statistics.quantiles(times[name], n=100)
                mib = sum(usage.memory for usage in usage_of(groups[name]).values())
                print(  # noqa: T201 - a measurement's purpose
                    f"{page} {name}: {cpu:.2f} ms CPU a request, p50 {tail[49]:.1f} ms,"
                    f" p99 {tail[98]:.1f} ms, {mib:.0f} MiB"
                )


if __name__ == "__main__":
    main()

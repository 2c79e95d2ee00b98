"""What reporting a call costs the agent, beside the SDKs of other products.

    python -m bench.client [--quick]

bare       OpenAI's SDK and a provider that answers at once: nothing is reported
failsoft   `failsoft.init` and `failsoft.run`, with OpenInference's instrumentation
phoenix    `phoenix.otel.register(auto_instrument=True)`, the same instrumentation
langfuse   its drop-in for OpenAI's SDK
sentry     its integration for OpenAI, every call traced

Each contender is a process of its own in one environment of the benchmark; they take turns, a
share of the calls each. What is reported goes to the provider's own process. CPU time includes the
threads that export; its mean counts, since an export falls on few calls.
"""

import argparse
import os
import sys
from contextlib import ExitStack
from pathlib import Path
from statistics import fmean, median

from bench.call import Contender, python_with, start_server, take_turns

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".local" / "bench" / "client"
SCRIPT = ROOT / "bench" / "client_contenders.py"
CONTENDERS = ("bare", "failsoft", "phoenix", "langfuse", "sentry")
PACKAGES = (
    "arize-phoenix-otel",
    "langfuse",
    "openai",
    "openinference-instrumentation-openai",
    "sentry-sdk",
    # What the library needs; itself it comes from the checkout.
    "google-re2",
    "jiter",
    "opentelemetry-exporter-otlp-proto-http",
    "pydantic",
)


def table(contenders: list[Contender]) -> list[str]:
    """A line for each: wall and CPU time of a call, and the CPU time above the bare call."""
    bare = fmean(contenders[0].cpus)
    lines = ["| contender | wall ms, median | CPU ms, mean | above bare |", "|---|---|---|---|"]
    for one in contenders:
        cpu = fmean(one.cpus)
        lines.append(f"| {one.name} | {median(one.walls):.2f} | {cpu:.2f} | {cpu - bare:+.2f} |")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="few calls")
    quick = parser.parse_args().quick
    rounds, calls = (2, 50) if quick else (10, 200)
    os.environ["PYTHONPATH"] = str(ROOT)
    with ExitStack() as stack:
        python, url = str(python_with(PACKAGES, FOLDER)), start_server(stack)
        commands = {name: [python, "-P", str(SCRIPT), name, url] for name in CONTENDERS}
        contenders = take_turns(commands, rounds, calls, stack)
    sys.stdout.write("\n".join(table(contenders)) + "\n")


if __name__ == "__main__":
    main()

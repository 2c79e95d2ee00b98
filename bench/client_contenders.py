"""The contenders of `bench.client`: `python client_contenders.py NAME URL`, each in its process.

Runs in the benchmark's environment; of the product it knows the library alone.
"""

import sys
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

from openai import OpenAI

# Last: modules of the benchmarks have names of packages.
sys.path.append(__file__.rpartition("/")[0])
from call_peers import ASK, SYSTEM, take_orders

Call = Callable[[], object]


def asking(client: Any) -> Call:  # noqa: ANN401 - OpenAI's SDK or a drop-in for it
    """Ask for a plan by chat completions."""
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": ASK}]

    def call() -> object:
        return client.chat.completions.create(model="instant", messages=messages)

    return call


def bare(url: str) -> Call:
    return asking(OpenAI(base_url=url, api_key="none"))


def failsoft(url: str) -> Call:
    """Make every call a run."""
    import failsoft as library  # noqa: PLC0415 - each contender loads what it needs

    library.init(url.removesuffix("/v1"), "none")
    ask = bare(url)

    def call() -> object:
        with library.run(node="bench"):
            return ask()

    return call


def phoenix(url: str) -> Call:
    """Register with all that is installed."""
    from phoenix.otel import register  # noqa: PLC0415

    register(endpoint=f"{url}/traces", auto_instrument=True, batch=True, verbose=False)
    return bare(url)


def langfuse(url: str) -> Call:
    """Use the drop-in."""
    from langfuse import Langfuse  # noqa: PLC0415
    from langfuse.openai import OpenAI as DropIn  # noqa: PLC0415

    Langfuse(public_key="none", secret_key="none", base_url=url.removesuffix("/v1"))  # noqa: S106
    return asking(DropIn(base_url=url, api_key="none"))


def sentry(url: str) -> Call:
    """Trace every call."""
    import sentry_sdk  # noqa: PLC0415
    from sentry_sdk.integrations.openai import OpenAIIntegration  # noqa: PLC0415

    sentry_sdk.init(
        dsn=f"http://none@{urlsplit(url).netloc}/1",
        traces_sample_rate=1.0,
        send_default_pii=True,
        integrations=[OpenAIIntegration(include_prompts=True)],
    )
    ask = bare(url)

    def call() -> object:
        with sentry_sdk.start_transaction(name="bench"):
            return ask()

    return call


CONTENDERS: dict[str, Callable[[str], Call]] = {
    "bare": bare,
    "failsoft": failsoft,
    "phoenix": phoenix,
    "langfuse": langfuse,
    "sentry": sentry,
}


if __name__ == "__main__":
    take_orders(CONTENDERS[sys.argv[1]](sys.argv[2]))

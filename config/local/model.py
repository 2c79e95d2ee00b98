"""The embedded language model: an OpenAI-compatible server on loopback.

Run as a module: `python -m config.local.model --port PORT`, with the bearer key in
FAILSOFT_MODEL_KEY (an argument would show in the process list).
"""

import argparse
import os
import signal
import sys

import xllamacpp

from config.local.binaries import BinaryMissingError, find_weights

NAME = "SmolLM2-135M"
HOST = "127.0.0.1"
SLOTS = 2  # simultaneous goals
CONTEXT_TOKENS = 8192  # the context of the training


def make_parameters(path: str, port: int, key: str) -> xllamacpp.CommonParams:
    """Return the parameters of the server; without `key` it is open on loopback."""
    parameters = xllamacpp.CommonParams()
    parameters.model.path = path
    parameters.model_alias = {NAME}
    parameters.hostnames = [HOST]
    parameters.port = port
    parameters.api_keys = [key] if key else []
    parameters.n_parallel = SLOTS
    parameters.n_ctx = CONTEXT_TOKENS * SLOTS
    parameters.n_threads_http = 2 * SLOTS
    # Threads wait for each other at every token: one per core stalls as soon as anything
    # else runs (3 tokens/s instead of 15 on two busy cores; 58 instead of 103 when idle).
    parameters.cpuparams.n_threads = max(1, (os.cpu_count() or 1) // 2)
    parameters.n_gpu_layers = 0
    parameters.warmup = False
    parameters.use_jinja = True
    parameters.ui = False
    parameters.endpoint_slots = False  # would show prompts of other goals
    parameters.cache_ram_mib = 256
    return parameters


def main() -> None:
    parser = argparse.ArgumentParser(description="serve the embedded language model")
    parser.add_argument("--port", type=int, required=True)
    port = parser.parse_args().port
    try:
        path = str(find_weights())
    except BinaryMissingError as error:
        sys.exit(str(error))
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))  # nothing to clean up
    server = xllamacpp.Server(make_parameters(path, port, os.environ.get("FAILSOFT_MODEL_KEY", "")))
    sys.stderr.write(f"serving {NAME} at {server.listening_address}\n")
    while True:
        signal.pause()


if __name__ == "__main__":
    main()

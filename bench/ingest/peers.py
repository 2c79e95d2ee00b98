"""Arize Phoenix and Bugsink, each in a virtual environment of its own under .local/bench/."""

import gzip
import json
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

from bench.call import python_with
from bench.servers import ROOT, start

HOME = ROOT / ".local" / "bench"
PHOENIX, BUGSINK = "arize-phoenix", "bugsink"
SENTRY_KEY = "0123456789abcdef0123456789abcdef"
SET_UP_BUGSINK = f"""
from projects.models import Project
Project.objects.get_or_create(name='bench', defaults={{'sentry_key': '{SENTRY_KEY}'}})
print(Project.objects.get(name='bench').pk)
"""
NO_BUGSINK_LIMITS = "".join(
    f"\nBUGSINK['{name}'] = 1_000_000_000"
    for name in (
        "MAX_EVENTS_PER_PROJECT_PER_5_MINUTES",
        "MAX_EVENTS_PER_PROJECT_PER_HOUR",
        "MAX_EVENTS_PER_PROJECT_PER_MONTH",
        "MAX_EVENTS_PER_5_MINUTES",
        "MAX_EVENTS_PER_HOUR",
        "MAX_EVENTS_PER_MONTH",
    )
)


def install(package: str) -> Path:
    """Make the environment of a package once; give its folder of programs."""
    return python_with([package], HOME / package).parent


def start_phoenix(port: int, folder: Path, stack: ExitStack) -> int:
    """Start Phoenix on SQLite in a folder; its process group."""
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PHOENIX_WORKING_DIR": str(folder),
        "PHOENIX_HOST": "127.0.0.1",
        "PHOENIX_PORT": str(port),
        "PHOENIX_GRPC_PORT": str(port + 1),
        "PHOENIX_TELEMETRY_ENABLED": "false",
        "PHOENIX_ALLOW_EXTERNAL_RESOURCES": "false",
    }
    program = install(PHOENIX) / "phoenix"
    return start([str(program), "serve"], env, f"http://127.0.0.1:{port}/healthz", stack)


def start_bugsink(port: int, folder: Path, stack: ExitStack) -> tuple[int, str]:
    """Start Bugsink on SQLite in a folder; its process group and its project's id."""
    programs, env = install(BUGSINK), _bugsink_environment(folder)
    conf = folder / "bugsink_conf.py"
    made = ("--template=local", f"--port={port}", f"-o{conf}")
    _run_bugsink(folder, "bugsink-create-conf", *made)
    databases = (
        f"\nDATABASES['default']['NAME'] = '{folder / 'db.sqlite3'}'"
        f"\nDATABASES['snappea']['NAME'] = '{folder / 'snappea.sqlite3'}'\n"
    )
    conf.write_text(conf.read_text() + NO_BUGSINK_LIMITS + databases)
    manage_bugsink(folder, "migrate")
    manage_bugsink(folder, "migrate", "snappea", "--database=snappea")
    project = manage_bugsink(folder, "shell", "-c", SET_UP_BUGSINK).split()[-1]
    words = ["--workers=1", "--threads=4", f"--bind=127.0.0.1:{port}"]
    command = [str(programs / "gunicorn"), *words, "bugsink.wsgi:application"]
    return start(command, env, f"http://127.0.0.1:{port}/health/ready", stack), project


def manage_bugsink(folder: Path, *words: str) -> str:
    """Run one of Bugsink's own commands on the one in a folder; give what it says."""
    return _run_bugsink(folder, "bugsink-manage", *words)


def _run_bugsink(folder: Path, program: str, *words: str) -> str:
    done = subprocess.run(  # noqa: S603 - our own words
        [str(install(BUGSINK) / program), *words],
        cwd=folder,
        env=_bugsink_environment(folder),
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


def _bugsink_environment(folder: Path) -> dict[str, str]:
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "PYTHONPATH": str(folder),
        "DJANGO_SETTINGS_MODULE": "bugsink_conf",
    }


def to_spans(events: Sequence[dict[str, Any]]) -> bytes:
    """Write events as one gzipped OTLP export of GenAI spans, as an exporter sends it."""
    from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as service  # noqa: PLC0415 - only here

    request = service.ExportTraceServiceRequest()
    spans = request.resource_spans.add().scope_spans.add().spans
    for event in events:
        span = spans.add()
        seed = sha256(event["event_id"].encode()).digest()
        span.trace_id, span.span_id = seed[:16], seed[16:24]
        span.name = event["name"]
        begun = int(datetime.fromisoformat(event["occurred_at"]).timestamp() * 1e9)
        span.start_time_unix_nano = begun
        span.end_time_unix_nano = begun + event["latency_ms"] * 1_000_000
        for name, told in _attributes(event):
            attribute = span.attributes.add()
            attribute.key = name
            if isinstance(told, int):
                attribute.value.int_value = told
            else:
                attribute.value.string_value = told
        if "raw_output_preview" in event:
            cast("Any", span.status).code = 2
    return gzip.compress(request.SerializeToString())


def _attributes(event: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    yield "openinference.span.kind", "LLM"
    yield "llm.model_name", event["model"]
    yield "llm.provider", event["provider"]
    yield "llm.token_count.prompt", event["input_tokens"]
    yield "llm.token_count.completion", event["output_tokens"]
    for name in ("correlation_id", "prompt_version", "environment", "source"):
        yield f"metadata.{name}", event[name]
    if "raw_output_preview" in event:
        yield "output.value", event["raw_output_preview"]
        yield "error.type", event["parse_error_type"]


def to_envelope(event: dict[str, Any]) -> bytes:
    """Write an event as a gzipped envelope of the error tracker's protocol."""
    identifier = event["event_id"].replace("-", "")
    told = {
        "event_id": identifier,
        "timestamp": event["occurred_at"],
        "platform": "python",
        "level": "error",
        "environment": event["environment"],
        "release": event["prompt_version"],
        "tags": {name: event[name] for name in ("provider", "model", "source", "schema")},
        "extra": {
            "correlation_id": event["correlation_id"],
            "preview": event.get("raw_output_preview", ""),
            "latency_ms": event["latency_ms"],
        },
        "exception": {
            "values": [{"type": event.get("parse_error_type", "succeeded"), "value": event["name"]}]
        },
    }
    lines = ({"event_id": identifier}, {"type": "event"}, told)
    return gzip.compress("\n".join(json.dumps(line) for line in lines).encode())

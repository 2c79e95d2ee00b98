"""Set up once: where to send, and which instrumentations tell the calls."""

import os
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from importlib import import_module
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from importlib.resources import files
from typing import Any, NamedTuple

from pydantic import TypeAdapter

from failsoft.redaction import Redactor
from failsoft.telemetry.connection import KEYS, ServerAddress, connection_of
from failsoft.telemetry.runs import LOG, harmless, is_sending, send_with

TABLE: Mapping[str, Any] = tomllib.loads(
    (files(__package__) / "instrumentations.toml").read_text(encoding="utf-8")
)
ENVIRONMENT: Mapping[str, str] = TABLE["environment"]
GROUP = "opentelemetry_instrumentor"
# All of its packages tell calls of models, those of no row as well.
OPENINFERENCE = "openinference-instrumentation-"


@dataclass(frozen=True, slots=True)
class Sdk:
    name: str
    by: tuple[str, ...] = ()
    switch: tuple[str, ...] = ()
    covers: tuple[str, ...] = ()
    logs: bool = False
    is_quiet: bool = False


class Enabled(NamedTuple):
    """What was enabled, what to install, and whether answers come as log records."""

    names: list[str]
    advice: list[str]
    needs_logs: bool


_row = TypeAdapter(Sdk).validate_python
SDKS = tuple(_row({"name": name, **row}) for name, row in TABLE["sdks"].items())


def enable(wanted: bool | Collection[str]) -> Enabled:
    """Enable what is installed, or what is named of it."""
    if isinstance(wanted, str):
        wanted = (wanted,)
    if wanted is False:
        return Enabled([], [], needs_logs=False)
    known = {
        point.dist.name.lower(): point
        for point in entry_points(group=GROUP)
        if point.dist is not None
    }
    chosen = [sdk for sdk in SDKS if _is_wanted(wanted, (sdk.name, *sdk.by))]
    present = [sdk for sdk in chosen if _is_installed(sdk.name)]
    switched = [sdk for sdk in present if _switch(sdk)]
    first = {sdk: name for sdk in present if (name := next(filter(known.__contains__, sdk.by), ""))}
    listed = {name for sdk in SDKS for name in sdk.by}
    others = [
        name
        for name in known
        if name not in listed and name.startswith(OPENINFERENCE) and _is_wanted(wanted, (name,))
    ]
    started = [name for name in (*first.values(), *others) if _start(known[name])]
    done = {*switched, *(sdk for sdk, name in first.items() if name in started)}
    return Enabled(
        [*(sdk.name for sdk in switched), *started],
        [*_advice(present, done), *_strangers(wanted, {*listed, *known})],
        any(sdk.logs for sdk in done),
    )


def _is_wanted(wanted: bool | Collection[str], names: Iterable[str]) -> bool:
    return wanted if isinstance(wanted, bool) else any(name in wanted for name in names)


def _is_installed(package: str) -> bool:
    try:
        distribution(package)
    except PackageNotFoundError:
        return False
    return True


def _switch(sdk: Sdk) -> bool:
    if not sdk.switch:
        return False
    target, *switch = sdk.switch
    module, _, path = target.partition(":")
    with harmless(f"instrumenting {sdk.name}"):
        reduce(getattr, path.split("."), import_module(module))(*switch)  # type: ignore[operator]
        return True
    return False


def _start(point: EntryPoint) -> bool:
    with harmless(f"instrumenting {point.name}"):
        instrumentor = point.load()()
        if not getattr(instrumentor, "is_instrumented_by_opentelemetry", False):
            instrumentor.instrument()
        return bool(getattr(instrumentor, "is_instrumented_by_opentelemetry", True))
    return False


def _advice(present: Iterable[Sdk], done: Collection[Sdk]) -> Iterator[str]:
    covered = {name for sdk in done for name in sdk.covers}
    for sdk in present:
        if sdk not in done and sdk.by and sdk.name not in covered and not sdk.is_quiet:
            yield f"calls of {sdk.name} are not sent: pip install {sdk.by[0]}"


def _strangers(wanted: bool | Collection[str], packages: Collection[str]) -> Iterator[str]:
    named = () if isinstance(wanted, bool) else wanted
    for name in sorted({*named} - {sdk.name for sdk in SDKS} - {*packages}):
        yield f"instrument names {name}, which is neither a known SDK nor installed"


@dataclass(frozen=True, slots=True)
class Setup:
    connection: ServerAddress
    resource: dict[str, str] = field(default_factory=dict)
    redactor: Redactor | None = None


def init(
    url: str | None = None,
    key: str | None = None,
    *,
    service: str | None = None,
    release: str | None = None,
    environment: str | None = None,
    instrument: bool | Collection[str] = True,
    redactor: Redactor | None = None,
) -> bool:
    """Send the calls of this process to a server; return whether they will be.

    `url` and `key` are also read from FAILSOFT_URL and FAILSOFT_API_KEY. `instrument` names the
    packages whose calls are sent; by default, all that are installed. Never raises; the log
    `failsoft` says what is enabled and what is missing.
    """
    if is_sending() or os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return is_sending()
    resource = {
        "service.name": service,
        "service.version": release,
        "deployment.environment.name": environment,
    }
    try:
        named = {name: text for name, text in resource.items() if text}
        setup = Setup(connection_of(url, key), named, redactor)
        for name, value in ENVIRONMENT.items():
            os.environ.setdefault(name, value)
        # OpenTelemetry is an extra: the library does without.
        sending = import_module("failsoft.telemetry.sending").send(setup)
        send_with(sending)
        names, advice, needs_logs = enable(instrument)
        if needs_logs:
            sending.send_logs()
    except ModuleNotFoundError as error:
        LOG.warning('failsoft: nothing is sent: pip install "failsoft[otel]" (%s)', error)
        return False
    except ValueError as error:
        LOG.warning("failsoft: nothing is sent: %s", error)
        return False
    except Exception:  # noqa: BLE001 - the host comes first
        LOG.warning("failsoft: the setup failed", exc_info=True)
        return is_sending()
    enabled = ", ".join(names) or "nothing is instrumented"
    LOG.info("failsoft: sending to %s: %s", setup.connection.url, enabled)
    if not setup.connection.key:
        advice = [f"no key: set {KEYS[0]}", *advice]
    for sentence in advice:
        LOG.warning("failsoft: %s", sentence)
    return True

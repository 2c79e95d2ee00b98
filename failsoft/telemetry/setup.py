"""Set up once: where to send, and which instrumentations tell the calls."""

import os
from collections.abc import Collection
from dataclasses import dataclass, field
from importlib import import_module

from failsoft.redaction import Redactor
from failsoft.telemetry.connection import ServerAddress, connection_of
from failsoft.telemetry.instrumenting import ENVIRONMENT, enable
from failsoft.telemetry.runs import LOG, is_sending, send_with


@dataclass(frozen=True, slots=True)
class Setup:
    """What `init` was told."""

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
    packages whose calls are told; by default, all that are installed. Never raises; the log
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
        told = {name: text for name, text in resource.items() if text}
        setup = Setup(connection_of(url, key), told, redactor)
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
    for sentence in advice:
        LOG.warning("failsoft: %s", sentence)
    return True

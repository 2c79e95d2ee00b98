"""Logging: one redacted JSON object per line on stderr."""

import io
import logging
import math
import sys
from time import monotonic
from typing import Any

import structlog

from config.configuration import configuration
from config.database import explain_outage
from diagnostics.redaction.redactor import redact_event

# Periodic tasks would log a line every second and hide the others.
QUIET: dict[str, dict[str, Any]] = {
    name: {"level": "WARNING"} for name in ("celery.app.trace", "celery.worker.strategy", "httpx")
}


# A worker would otherwise log a traceback for each task, two of them a second.
OUTAGE_SECONDS = 30.0


class OutageFilter(logging.Filter):
    """Says that the database is away in one line, and again after half a minute."""

    _said = -math.inf

    def filter(self, record: logging.LogRecord) -> bool:
        """Shorten the record of an outage, or drop it if one was logged a moment ago."""
        error = record.exc_info and record.exc_info[1]
        reason = explain_outage(error) if error else None
        if reason is None:
            return True
        if monotonic() - self._said < OUTAGE_SECONDS:
            return False
        self._said = monotonic()
        record.exc_info = record.exc_text = None
        line = f"the database is away: {reason}"
        if isinstance(record.msg, dict):  # structlog's, with the fields of the event
            record.msg = {**record.msg, "event": line}
            record.msg.pop("exception", None)
        else:
            record.msg, record.args = line, ()
        return True


SHARED: list[structlog.typing.Processor] = [
    structlog.contextvars.merge_contextvars,
    structlog.stdlib.add_logger_name,
    structlog.stdlib.add_log_level,
    structlog.processors.TimeStamper(fmt="iso", utc=True),
    structlog.processors.format_exc_info,
]


def json_formatter() -> logging.Formatter:
    """Return the formatter of every line; config/web_logging.json names it for the web server.

    The settings are read first: the process that watches over the web workers would otherwise
    start one after the other, and could not redact what it has to say.
    """
    configuration()
    # Its buffer would keep what a full disk refused, and no later fork would start.
    if sys.stderr and sys.stderr is sys.__stderr__:
        raw = io.FileIO(2, "w", closefd=False)
        sys.stderr = io.TextIOWrapper(raw, "utf-8", "backslashreplace", write_through=True)
    return structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=SHARED,
        processors=[
            structlog.stdlib.ProcessorFormatter.remove_processors_meta,
            redact_event,
            structlog.processors.JSONRenderer(default=str),
        ],
    )


def configure_logging(level: str) -> dict[str, Any]:
    """Configure structlog and return Django's LOGGING with the same format."""
    logging.captureWarnings(True)
    structlog.configure(
        processors=[*SHARED, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {"json": {"()": json_formatter}},
        "filters": {"outage": {"()": OutageFilter}},
        "handlers": {
            "stderr": {"class": "logging.StreamHandler", "formatter": "json", "filters": ["outage"]}
        },
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {"django": {"level": level}, **QUIET},
    }

"""Logging: one redacted JSON object per line on stderr."""

import logging
from typing import Any

import structlog

from config.configuration import configuration
from diagnostics.redaction.redactor import redact_event

# Periodic tasks would log a line every second and hide the others.
QUIET: dict[str, dict[str, Any]] = {
    name: {"level": "WARNING"} for name in ("celery.app.trace", "celery.worker.strategy", "httpx")
}


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
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {"django": {"level": level}, **QUIET},
    }

"""Logging: one redacted JSON object per line on stderr."""

from typing import Any

import structlog

from diagnostics.redaction.redactor import redact_event

# Periodic tasks would log a line every second and hide the others.
QUIET: dict[str, dict[str, Any]] = {
    name: {"level": "WARNING"} for name in ("celery.app.trace", "celery.worker.strategy", "httpx")
}


def configure_logging(level: str) -> dict[str, Any]:
    """Configure structlog and return Django's LOGGING with the same format."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "json": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": shared,
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    redact_event,
                    structlog.processors.JSONRenderer(default=str),
                ],
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {"django": {"level": level}, **QUIET},
    }

"""OpenTelemetry spans and log records as events."""

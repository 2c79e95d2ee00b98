"""OpenTelemetry's spans and log records as events: pure mapping, one file a convention."""

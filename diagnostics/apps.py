from django.apps import AppConfig


class DiagnosticsConfig(AppConfig):
    """The app's name and label in Django's registry."""

    name = "diagnostics"
    label = "diagnostics"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the checks and let redacted fields mask."""
        from diagnostics.redaction import checks  # noqa: F401, PLC0415 - needs ready apps
        from diagnostics.redaction.fields import use_redactor  # noqa: PLC0415
        from diagnostics.redaction.redactor import redact  # noqa: PLC0415

        use_redactor(redact)
        _register_texts()


def _register_texts() -> None:
    """Say what is redacted again after a new rule."""
    from diagnostics import models as rows  # noqa: PLC0415 - needs ready apps
    from diagnostics.redaction.rescrub import StoredTexts as Source  # noqa: PLC0415
    from diagnostics.redaction.rescrub import register_texts  # noqa: PLC0415

    register_texts(
        Source(
            rows.EventPayload,
            ("raw_output_preview", "original_error_type", "tool"),
            ("validation_errors", "repairs", "coerced", "attributes"),
            # As its key has it: the index gives the next rows of every day without sorting.
            ("event_id", "occurred_at"),
        ),
        Source(rows.Reject, ("head", "message", "path"), ("errors",)),
        Source(rows.Report, ("title", "subject"), ("document",)),
        Source(rows.Incident, ("title", "tracker_url"), ("verdict", "verdict_now")),
        Source(rows.Silence, ("reason",)),
        Source(rows.IncidentNote, ("text",), project="incident__project"),
        Source(rows.GroupChange, ("text",), project="group__project"),
        Source(rows.Notification, ("why", "answer", "last_error"), ("facts",)),
        Source(rows.ReportDelivery, ("last_error",), ("skipped",)),
        Source(rows.Channel, ("name", "last_error")),
        Source(rows.ApiKey, ("name",)),
        Source(rows.FailureGroup, ("detail",)),
        Source(rows.OutboxMessage, ("last_error",)),
        Source(rows.Deploy, ("note",)),
        Source(rows.SavedView, ("name", "query")),
        Source(rows.AlertRule, ("name",)),
        Source(rows.MaintenanceWindow, ("name",)),
        Source(rows.VerdictMark, documents=("verdict",)),
        Source(rows.SpanVerdict, documents=("content",)),
    )

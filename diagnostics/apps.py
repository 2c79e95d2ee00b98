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
    from diagnostics.redaction.rescrub import StoredTexts, register_texts  # noqa: PLC0415

    register_texts(
        StoredTexts(
            rows.EventPayload,
            ("raw_output_preview", "original_error_type", "tool"),
            ("validation_errors", "repairs", "coerced", "attributes"),
            # As its key has it: the index gives the next rows of every day without sorting.
            ("event_id", "occurred_at"),
        ),
        StoredTexts(rows.Reject, ("head", "message", "path"), ("errors",)),
        StoredTexts(rows.Report, ("title", "subject"), ("document",)),
        StoredTexts(rows.Incident, ("title", "tracker_url"), ("verdict", "verdict_now")),
        StoredTexts(rows.Silence, ("reason",)),
        StoredTexts(rows.IncidentNote, ("text",), project="incident__project"),
        StoredTexts(rows.GroupChange, ("text",), project="group__project"),
        StoredTexts(rows.Notification, ("why", "answer", "last_error"), ("facts",)),
        StoredTexts(rows.ReportDelivery, ("last_error",), ("skipped",)),
        StoredTexts(rows.Channel, ("name", "last_error")),
        StoredTexts(rows.ApiKey, ("name",)),
        StoredTexts(rows.FailureGroup, ("detail",)),
        StoredTexts(rows.OutboxMessage, ("last_error",)),
        StoredTexts(rows.Deploy, ("note",)),
        StoredTexts(rows.SavedView, ("name", "query")),
        StoredTexts(rows.AlertRule, ("name",)),
        StoredTexts(rows.MaintenanceWindow, ("name",)),
        StoredTexts(rows.VerdictMark, documents=("verdict",)),
        StoredTexts(rows.SpanVerdict, documents=("content",)),
    )

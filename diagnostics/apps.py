from django.apps import AppConfig


class DiagnosticsConfig(AppConfig):
    name = "diagnostics"
    label = "diagnostics"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Give redacted fields the redactor; register stored texts."""
        from diagnostics.redaction.fields import use_redactor  # noqa: PLC0415
        from diagnostics.redaction.redactor import redact  # noqa: PLC0415

        use_redactor(redact)
        self._register_texts()

    def _register_texts(self) -> None:
        from diagnostics.redaction.rescrub import StoredTexts, register_texts  # noqa: PLC0415

        row = self.get_model

        register_texts(
            StoredTexts(
                row("EventPayload"),
                ("raw_output_preview", "original_error_type", "tool"),
                ("validation_errors", "repairs", "coerced", "attributes"),
                # The order of its key: the index returns the next rows of a day without sorting.
                ("event_id", "occurred_at"),
            ),
            StoredTexts(row("Reject"), ("head", "message", "path"), ("errors",)),
            StoredTexts(row("Report"), ("title", "subject"), ("document",)),
            StoredTexts(row("Incident"), ("title", "tracker_url"), ("verdict", "verdict_now")),
            StoredTexts(row("Silence"), ("reason",)),
            StoredTexts(row("IncidentNote"), ("text",), project="incident__project"),
            StoredTexts(row("GroupChange"), ("text",), project="group__project"),
            StoredTexts(
                row("Notification"), ("why", "answer", "last_error"), ("facts", "receipts")
            ),
            StoredTexts(row("ReportDelivery"), ("last_error",), ("skipped",)),
            StoredTexts(row("Channel"), ("name", "last_error")),
            StoredTexts(row("ApiKey"), ("name",)),
            StoredTexts(row("FailureGroup"), ("detail",)),
            StoredTexts(row("OutboxMessage"), ("last_error",)),
            StoredTexts(row("Deploy"), ("note",)),
            StoredTexts(row("Assessment"), ("reason",)),
            StoredTexts(row("SavedView"), ("name", "query")),
            StoredTexts(row("AlertRule"), ("name",)),
            StoredTexts(row("VerdictMark"), documents=("verdict",)),
            StoredTexts(row("ProjectStatus"), documents=("verdict",)),
            StoredTexts(row("SpanVerdict"), documents=("content",)),
        )

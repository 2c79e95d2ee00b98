import logging

import stamina.instrumentation
from django.apps import AppConfig

# At DEBUG they write whole requests: prompts and headers.
VERBOSE_LOGGERS = ("openai", "anthropic", "httpx", "httpx2", "httpcore", "httpcore2")


class AgentsConfig(AppConfig):
    name = "agents"

    def ready(self) -> None:
        """Register with the apps below; keep prompts out of the logs of libraries."""
        for name in VERBOSE_LOGGERS:
            logging.getLogger(name).setLevel(logging.WARNING)
        _register_texts()
        from agents.breakers import alerts as breaker_alerts  # noqa: PLC0415 - needs ready apps

        breaker_alerts.register()
        # Retries are counted in the attempt's row instead.
        stamina.instrumentation.set_on_retry_hooks([])


def _register_texts() -> None:
    """Register what a new rule redacts again: every text shown of goals and runs."""
    from agents.actions import models as actions  # noqa: PLC0415 - needs ready apps
    from agents.breakers import models as breakers  # noqa: PLC0415
    from agents.goals import models as goals  # noqa: PLC0415
    from agents.llm import models as llm  # noqa: PLC0415
    from diagnostics.redaction.rescrub import StoredTexts, register_texts  # noqa: PLC0415
    from plans.models import check, run  # noqa: PLC0415

    register_texts(
        StoredTexts(
            goals.Goal,
            ("text_preview", "next_user_question", "user_text"),
            ("constraints", "last_validation_error", "execution_eval", "help"),
        ),
        StoredTexts(
            goals.Attempt,
            ("feedback", "preview"),
            ("dropped_constraints", "errors", "repairs", "coerced"),
        ),
        StoredTexts(actions.Entry, ("content", "summary", "source_text", "due_text")),
        StoredTexts(
            goals.ActionBatch,
            ("summary",),
            ("applied", "parse_failures", "execution_failures", "kept"),
        ),
        StoredTexts(run.Run, ("refused_reason",), ("payload", "meta", "contract_violations")),
        StoredTexts(run.RunStep, ("title", "reason", "error"), ("output",)),
        StoredTexts(check.CompletionCheck, ("reason", "preview"), ("reasons",)),
        StoredTexts(breakers.BreakerTransition, ("reason",), project="breaker__project"),
        StoredTexts(goals.PlanningStop, ("reason",)),
        StoredTexts(llm.ModelCheck, ("said",)),
    )

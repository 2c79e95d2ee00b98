"""What the agents have stored, to read: providers, models and breakers change in the console."""

from agents.breakers.models import Breaker
from agents.fix_patterns.models import FixPattern, FixPolicy
from agents.goals.models import Attempt, Goal
from agents.llm.models import LanguageModel, Provider
from diagnostics.accounts.administration import register_read_only

register_read_only(
    Provider, "name adapter base_url credential enabled project", "project adapter enabled"
)
register_read_only(
    LanguageModel,
    "name provider is_default enabled output_mode last_output_mode max_output_tokens",
    "project provider enabled",
    list_select_related=("provider",),
)
register_read_only(
    Breaker, "provider model operation kind state cause open_until changed_at", "project state kind"
)
register_read_only(
    Goal,
    "correlation_id status outcome mode created_at",
    "project status outcome mode",
    search="correlation_id",
)
register_read_only(
    FixPattern,
    "schema error_class code pointer change successes decision last_success_at",
    "project schema error_class decision",
)
register_read_only(FixPolicy, "project mode changed_by changed_at")
register_read_only(
    Attempt,
    "goal node cycle attempt state error_type model",
    "project state error_type model",
    search="goal__correlation_id",
    list_select_related=("goal",),
)

"""The models of this app, for Django to find."""

from agents.actions.models import Entry
from agents.breakers.models import Breaker, BreakerTransition
from agents.fix_patterns.models import FixPattern, FixPolicy, FixSuccess
from agents.goals.models import ActionBatch, Attempt, Goal, PlanningStop
from agents.jobs import DemoOrder, PurgeOrder
from agents.llm.models import LanguageModel, ModelCheck, Provider

__all__ = [
    "ActionBatch",
    "Attempt",
    "Breaker",
    "BreakerTransition",
    "DemoOrder",
    "Entry",
    "FixPattern",
    "FixPolicy",
    "FixSuccess",
    "Goal",
    "LanguageModel",
    "ModelCheck",
    "PlanningStop",
    "Provider",
    "PurgeOrder",
]

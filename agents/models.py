"""The models of this app, for Django to find."""

from agents.actions.models import Entry
from agents.breakers.models import Breaker, BreakerTransition
from agents.demo.models import DemoOrder
from agents.fix_patterns.models import FixPattern, FixPolicy, FixSuccess
from agents.goals.models import ActionBatch, Attempt, Goal, PlanningStop
from agents.llm.models import LanguageModel, ModelCheck, Provider
from agents.purge.models import PurgeOrder

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

"""Rows of who plans, what was asked, and every call that was made for it."""

from agents.models.action_batch import ActionBatch
from agents.models.attempt import Attempt
from agents.models.breaker import Breaker, BreakerTransition
from agents.models.demo_order import DemoOrder
from agents.models.entry import Entry
from agents.models.fix_pattern import FixPattern, FixPolicy, FixSuccess
from agents.models.goal import Goal
from agents.models.model_check import ModelCheck
from agents.models.planning_stop import PlanningStop
from agents.models.provider import LanguageModel, Provider
from agents.models.purge_order import PurgeOrder

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

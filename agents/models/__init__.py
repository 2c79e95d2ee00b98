"""Rows of who plans, what was asked, and every call that was made for it."""

from agents.models.attempt import Attempt
from agents.models.goal import Goal
from agents.models.provider import LanguageModel, Provider

__all__ = ["Attempt", "Goal", "LanguageModel", "Provider"]

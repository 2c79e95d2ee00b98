"""Rows of the work: runs, their steps, and the working store."""

from plans.models.run import Run, RunStep
from plans.models.working import WorkingItem

__all__ = ["Run", "RunStep", "WorkingItem"]

"""Rows of the work: runs, their steps, and what execution needs unredacted for a while."""

from plans.models.run import Run, RunStep
from plans.models.working import WorkingItem

__all__ = ["Run", "RunStep", "WorkingItem"]

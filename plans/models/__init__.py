"""Rows of the work: runs, their steps, the working store, and tools."""

from plans.models.check import CompletionCheck
from plans.models.run import Run, RunStep
from plans.models.tool import McpServer, McpTool, ProjectToolPolicy, ToolSlot
from plans.models.working import WorkingItem

__all__ = [
    "CompletionCheck",
    "McpServer",
    "McpTool",
    "ProjectToolPolicy",
    "Run",
    "RunStep",
    "ToolSlot",
    "WorkingItem",
]

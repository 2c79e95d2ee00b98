"""Rows of the work: runs, their steps, the working store, and tools."""

from plans.models.run import Run, RunStep
from plans.models.tool import McpServer, McpTool, ProjectToolPolicy, ToolSlot
from plans.models.working import WorkingItem

__all__ = [
    "McpServer",
    "McpTool",
    "ProjectToolPolicy",
    "Run",
    "RunStep",
    "ToolSlot",
    "WorkingItem",
]

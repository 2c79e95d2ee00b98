"""Rows of the work: runs, their steps, the working store, and tools."""

from plans.models.check import CompletionCheck
from plans.models.run import Run, RunStep, WorkingItem
from plans.models.tool import McpServer, McpTool, ProjectToolPolicy, ToolSlot

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

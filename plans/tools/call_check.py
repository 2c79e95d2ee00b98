"""The check of a planner's calls before its plan is accepted.

References to steps and to secrets count as of any type: their values are known in execution only,
where the arguments are checked again.
"""

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import Any

import structlog

from failsoft.json_values import pointer_of
from failsoft.plans.ordering import referenced_step
from failsoft.plans.validation import TOOL_UNKNOWN, explain_unknown_tool
from failsoft.plans.violations import Violation
from failsoft.retry.judging import CallCheck
from plans.tools.definition import ArgumentFault, Tool, value_at
from plans.tools.registry import find_tool, registered_tools
from plans.tools.server_settings import is_reference

logger = structlog.get_logger(__name__)

MISSING, UNKNOWN, INVALID = "argument_missing", "argument_unknown", "argument_invalid"
# All other codes mean that a value does not fit.
_CODES = {"missing": MISSING, "extra_forbidden": UNKNOWN}


def call_check(only: Collection[str] | None = None) -> CallCheck:
    """Return a check of calls that looks up each tool once.

    Of the registered tools all are known, or `only` some by name.
    """
    find = cache(find_tool)

    def check(name: str, args: Mapping[str, Any]) -> Sequence[Violation]:
        tool = find(name)
        if tool is None or (only is not None and tool.name not in only):
            known = registered_tools() if only is None else only
            return [Violation("", TOOL_UNKNOWN, explain_unknown_tool(name, known))]
        return [
            Violation(pointer_of(fault.place), _CODES.get(fault.code, INVALID), fault.message)
            for fault in _faults(tool, args)
            if fault.code in _CODES or not _refers(value_at(args, fault.place))
        ]

    return check


def _faults(tool: Tool, args: Mapping[str, Any]) -> Sequence[ArgumentFault]:
    try:
        return tool.arguments.faults(args)
    except Exception:
        # A validator of somebody's tool; its step will say so when it runs.
        logger.exception("arguments_unchecked", tool=tool.name)
        return ()


def _refers(value: object) -> bool:
    if isinstance(value, str):
        return referenced_step(value) is not None or is_reference(value)
    if isinstance(value, Mapping):
        return any(map(_refers, value.values()))
    return isinstance(value, list) and any(map(_refers, value))

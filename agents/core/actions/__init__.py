"""Tool calls of a model, decoded one by one: what is good is kept, what is not is counted (s4)."""

from agents.core.actions.decoding import decode_tool_calls
from agents.core.actions.results import Action, Leniency, ParseFailure, ParseResult
from agents.core.actions.toolsets import Toolset

__all__ = [
    "Action",
    "Leniency",
    "ParseFailure",
    "ParseResult",
    "Toolset",
    "decode_tool_calls",
]

"""Decoding of tool calls, each in isolation: valid calls become actions, others failures.

>>> from failsoft.actions import decode_tool_calls
>>> from failsoft.actions.entries import ENTRIES
>>> result = decode_tool_calls([{"function": {"name": "nothing", "arguments": "{}"}}], ENTRIES)
>>> len(result.actions), result.failures[0].code
(0, 'unknown_tool')
"""

from failsoft.actions.decoding import decode_tool_calls
from failsoft.actions.results import Action, Leniency, ParseFailure, ParseResult
from failsoft.actions.toolsets import Toolset

__all__ = ["Action", "Leniency", "ParseFailure", "ParseResult", "Toolset", "decode_tool_calls"]

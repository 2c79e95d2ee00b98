"""Tool calls of a model, decoded one by one: what is good is kept, what is not is counted.

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

"""The names a pattern may hold: keys of our own schemas and codes of our own validators."""

from agents.core.actions.catalogue import TOOLSETS
from agents.core.coercion import PLAN_KEYS, STEP_KEYS, TOOL_KEYS
from agents.core.fix_patterns.rules import CODES
from agents.core.interpreting import Schema
from agents.core.proposals import KINDS

STAR = "*"
OTHER = "other"
MAX_SEGMENTS = 12
ARGUMENTS = frozenset({"args"})

_PROPOSAL_KEYS = frozenset(name for kind in KINDS.values() for name in kind.model_fields)
_CALL_KEYS = frozenset({"tool_calls", "function", "name", "arguments"})
_ENTRY_KEYS = frozenset(
    name
    for toolset in TOOLSETS.values()
    for tool in toolset.tools
    for name in (
        tool.list_key,
        *tool.groups,
        *(field.name for field in tool.fields),
    )
)
OWN_KEYS: dict[Schema, frozenset[str]] = {
    Schema.PLAN: PLAN_KEYS | STEP_KEYS | TOOL_KEYS,
    Schema.NEXT_STEP: _PROPOSAL_KEYS,
    Schema.ACTIONS: _CALL_KEYS | _ENTRY_KEYS,
}


def parts_of(pointer: str) -> list[str]:
    """The segments of a JSON pointer, unescaped."""
    if not pointer.startswith("/"):
        return []
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer[1:].split("/")]


def own_pointer(parts: list[str], schema: Schema) -> str:
    """The pointer with a star for each index and for each name that is not ours.

    Arguments of a tool of a plan are the tool's: below them nothing is named.
    """
    own = OWN_KEYS[schema]
    named: list[str] = []
    for part in parts[:MAX_SEGMENTS]:
        is_argument = not ARGUMENTS.isdisjoint(named)
        named.append(part if part in own and not is_argument else STAR)
    return "".join(f"/{name}" for name in named)


def own_code(code: str | None) -> str:
    """The code of a broken rule, if it is one of ours."""
    return code if code in CODES else OTHER

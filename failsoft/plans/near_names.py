"""Other names that models write for the keys of a plan."""

import re
from collections.abc import Collection, Mapping

_SEPARATORS = re.compile(r"[\s_-]+")
# Names are compared without case, spaces, underscores and hyphens.
NEAR_NAMES: Mapping[str, frozenset[str]] = {
    "args": frozenset((
        "arg", "argument", "arguments", "input", "inputs", "kwargs", "param", "parameter",
        "parameters", "params", "actioninput", "toolargs", "toolarguments", "toolinput",
        "toolparams",
    )),
    "dependencies": frozenset((
        "after", "blockedby", "dep", "dependency", "dependson", "dependsupon", "deps", "needs",
        "predecessors", "prereqs", "prerequisite", "prerequisites", "requires", "runafter",
        "waitfor", "waitsfor",
    )),
}  # fmt: skip


def plain_name(key: str) -> str:
    """Return a key without case, spaces, underscores and hyphens."""
    return _SEPARATORS.sub("", key).casefold()


def key_meant(key: str, known_keys: Collection[str]) -> str | None:
    """Return the known key that a key is another spelling or name of, if there is one."""
    plain = plain_name(key)
    for known in known_keys:
        if plain == plain_name(known) or plain in NEAR_NAMES.get(known, ()):
            return known
    return None

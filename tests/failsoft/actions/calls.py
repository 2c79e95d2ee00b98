"""Tool calls as a model writes them."""

import json
from typing import Any


def call(name: object, arguments: object, identity: object = "call_1") -> dict[str, Any]:
    """A call whose arguments stand as they are given."""
    function = {"name": name, "arguments": arguments}
    return {"id": identity, "type": "function", "function": function}


def written(name: str, arguments: object, identity: str = "call_1") -> dict[str, Any]:
    """A call whose arguments are JSON text."""
    return call(name, json.dumps(arguments), identity)


def create(*entries: object, identity: str = "call_1") -> dict[str, Any]:
    """A call of create_entries."""
    return written("create_entries", {"entries": list(entries)}, identity)


def update(fields: object, identity: str = "call_1", entry: str = "abc") -> dict[str, Any]:
    """A call of update_entries with one update."""
    updates = [{"id": entry, "fields": fields}]
    return written("update_entries", {"updates": updates}, identity)


def complete(entry: object = "abc", identity: str = "call_1") -> dict[str, Any]:
    """A call of complete_entries with one entry."""
    return written("complete_entries", {"entries": [{"id": entry}]}, identity)

"""What a model of pydantic expects, worded for whoever wrote an invalid value."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

_QUOTED = re.compile(r"'([^']*)'")
_MISSING = "expected this key, which is required"


def expectation(error: Mapping[str, Any], value: object = None) -> str:
    """Return what was expected at the place of an error of pydantic.

    Of the value only the letter case is mentioned, if that is all that differs.
    """
    if error["type"] == "missing":
        return _MISSING
    text = str(error["msg"]).replace("Input should be ", "expected ", 1)
    options = _QUOTED.findall(str(error.get("ctx", {}).get("expected", "")))
    return text + case_hint(value, without_case(options))


def without_case(options: Iterable[object]) -> dict[str, str]:
    """Return the texts among options by their form without letter case; the first counts."""
    folded: dict[str, str] = {}
    for option in options:
        if isinstance(option, str):
            folded.setdefault(option.casefold(), option)
    return folded


def case_hint(value: object, folded: Mapping[str, str]) -> str:
    """Return a hint for a text that differs from an option in letter case only, else ""."""
    meant = folded.get(value.casefold()) if isinstance(value, str) else None
    return "" if meant is None else f'; only the letter case differs from "{meant}"'

"""Answers quoted as Markdown does it: every line begins with `>`."""
# ruff: noqa: RUF001 - look-alike characters are what this module is about

import re

from diagnostics.core.recovery.ledger import Ledger

_QUOTED_LINES = re.compile(r"(?:^[ \t]{0,3}>[^\n]*(?:\n|\Z))+", re.MULTILINE)
_MARK = re.compile(r"^[ \t]{0,3}(?:>[ \t]?)+", re.MULTILINE)


def drop_block_quotes(text: str, ledger: Ledger) -> str:
    """Blank out the marks of quoted lines that hold a bracket; offsets stay."""
    if ">" not in text:
        return text

    def blank(lines: re.Match[str]) -> str:
        if not any(bracket in lines[0] for bracket in "{[｛［"):
            return lines[0]
        ledger.note(lines.start() + lines[0].index(">"), "block_quote")
        return _MARK.sub(lambda mark: " " * len(mark[0]), lines[0])

    return _QUOTED_LINES.sub(blank, text)

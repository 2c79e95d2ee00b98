"""Mail header values: one line, no control characters, cut."""

import unicodedata

LONGEST_SUBJECT = 200
LONGEST_HEADER = 900
ELLIPSIS = "…"
# Control, format (turns of writing direction), surrogate, line and paragraph separators.
LEFT_OUT = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def clean_header(value: str, limit: int = LONGEST_HEADER) -> str:
    """Return a value as one line: line breaks and direction marks become spaces.

    Runs of white space become one space; a longer value is cut with an ellipsis.
    """
    start = value[: 4 * limit]
    if not (start.isascii() and start.isprintable()):
        start = "".join(" " if unicodedata.category(char) in LEFT_OUT else char for char in start)
    line = " ".join(start.split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + ELLIPSIS


def clean_subject(value: str) -> str:
    return clean_header(value, LONGEST_SUBJECT)


def message_id(name: str, host: str) -> str:
    """Return the stable id of a mail; the same name gives the same id.

    Characters that an id cannot contain become hyphens.
    """
    return f"<{_atom(name)}@{_atom(host) or 'localhost'}>"


def _atom(text: str) -> str:
    characters = (
        char if char.isascii() and (char.isalnum() or char in "-_.") else "-" for char in text[:200]
    )
    parts = (part.strip("-") for part in "".join(characters).split("."))
    return ".".join(part for part in parts if part)

"""What may stand in the head of a mail: one line, no control characters, cut."""

import unicodedata

LONGEST_SUBJECT = 200
LONGEST_HEADER = 900
ELLIPSIS = "…"
# Control, format (turns of writing direction), surrogate, line and paragraph separators.
LEFT_OUT = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def clean_header(value: str, most: int = LONGEST_HEADER) -> str:
    """Return a value as one line: what would break or turn it becomes a space.

    Runs of white space become one space; a longer value is cut with an ellipsis.
    """
    begun = value[: 4 * most]
    if not (begun.isascii() and begun.isprintable()):
        begun = "".join(" " if unicodedata.category(char) in LEFT_OUT else char for char in begun)
    line = " ".join(begun.split())
    return line if len(line) <= most else line[: most - 1].rstrip() + ELLIPSIS


def clean_subject(value: str) -> str:
    """Return a subject as one line of at most 200 characters."""
    return clean_header(value, LONGEST_SUBJECT)


def message_id(name: str, host: str) -> str:
    """Make the stable id of a mail from a name of ours; the same name gives the same id.

    Characters that an id cannot carry become a hyphen.
    """
    return f"<{_atom(name)}@{_atom(host) or 'localhost'}>"


def _atom(text: str) -> str:
    kept = (
        char if char.isascii() and (char.isalnum() or char in "-_.") else "-" for char in text[:200]
    )
    parts = (part.strip("-") for part in "".join(kept).split("."))
    return ".".join(part for part in parts if part)

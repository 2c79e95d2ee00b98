"""A document, and how much of its secrets and of its other words a redactor left."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Document:
    """A text; `secrets` as they stand in it, none in a negative document."""

    category: str
    text: str
    secrets: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    # More than the secret that may be masked with it, such as the frame of a PEM block.
    frame: tuple[str, ...] = ()
    # So many characters of a secret in a row are a leak.
    leak_from: int = 6
    # The result is cut to so many bytes; what is left out then is no loss.
    limit: int | None = None


def leaks(document: Document, out: str) -> bool:
    """Ask whether some characters in a row of a secret are left in the text."""
    out = re.sub(r"\[REDACTED:[a-z0-9_-]+\]", "\0", out)
    return any(
        secret[at : at + document.leak_from] in out
        for secret in document.secrets
        for at in range(max(1, len(secret) - document.leak_from + 1))
    )


def kept_share(document: Document, out: str) -> tuple[int, int]:
    """Count the characters of the benign words of an uncut text, and of those that are left."""
    if document.limit is not None:
        return 0, 0
    benign = document.text
    gone = {*document.secrets, *document.frame}
    gone |= {json.dumps(part)[1:-1] for part in gone}
    benign = re.sub(r"\\+[nr]", " ", benign)
    for secret in sorted(gone, key=len, reverse=True):
        benign = benign.replace(secret, "\0")
    words = [part for part in re.findall(r"[^\s\0]+", benign) if len(part) > 1]
    kept, at = 0, 0
    for word in words:
        found = out.find(word, at)
        if found >= 0:
            kept, at = kept + len(word), found + len(word)
    return sum(map(len, words)), kept


def recall(documents: Sequence[Document], outs: Sequence[str]) -> dict[str, tuple[int, int]]:
    """Count by category how many documents leak nothing, and how many there are."""
    counts: dict[str, tuple[int, int]] = {}
    for document, out in zip(documents, outs, strict=True):
        good, all_of = counts.get(document.category, (0, 0))
        counts[document.category] = (good + (not leaks(document, out)), all_of + 1)
    return counts

"""Answers in which a model declines to answer."""
# ruff: noqa: RUF001 - look-alike characters are what this module is about

import re

# Our own word for an answer whose stream broke off.
STREAM_CUT = "stream_cut"
CUT_OFF_REASONS = frozenset(
    {STREAM_CUT, "length", "max_tokens", "max_output_tokens", "model_length"}
    | {"model_context_window_exceeded"}
)
DECLINED_REASONS = frozenset({"content_filter", "refusal", "safety"})

_REFUSAL = re.compile(
    r"\W*(?:i(?: a|['’]?)m (?:very |really |so |truly )?(?:sorry|afraid)\b|sorry\b|i apologi[sz]e"
    r"|(?:my )?apologies\b|i (?:regret|refuse)\b|(?:that|this)(?: is|['’]s) not something i can\b"
    r"|i(?: am|['’]m)? (?:can['’]?t|can ?not|won['’]?t|will not|unable|not able|do not|don['’]?t)"
    r"|i (?:must|have to) decline|unfortunately,? (?:i|we)\b|as an ai\b|as a language model)",
    re.IGNORECASE,
)


def declines(text: str) -> bool:
    """Whether a text without an answer begins as a refusal does."""
    return _REFUSAL.match(text[:400].lstrip()) is not None

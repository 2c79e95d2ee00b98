"""What a model says before its answer: think blocks and the analysis channel are not the answer."""

import re
from collections.abc import Iterator

from diagnostics.core.recovery.faults import cut_off
from diagnostics.core.recovery.ledger import Ledger

_NAMES = "think|thinking|thoughts?|reasoning|reflection|scratchpad|analysis|rationale|antthinking"
_NAMES += "|inner_thoughts?|inner_monologue|monologue|chain_of_thought|cot"
_TAG = re.compile(
    rf"<(?P<close>/?)(?:{_NAMES})(?:\s[^<>\n]{{0,200}})?(?<!/)>|\[(?P<close2>/?)THINK\]|◁(?P<close3>/?)think▷"
    r"|<\|(?P<mark>begin|end)_of_thought\|>",
    re.IGNORECASE,
)
_ANALYSIS = re.compile(r"<\|channel\|>\s*analysis\b[^<]{0,200}<\|message\|>")
_CHANNEL_END = re.compile(r"<\|(?:end|start|channel|return)\|>")
_OPEN = "every think block closed before the answer"


def drop_thinking(text: str, ledger: Ledger) -> str:
    """Blank out think blocks; offsets stay. A block that is never closed is a fault at the start.

    Everything before a closing tag without an opening one was thinking too.
    """
    if "<" not in text and "THINK]" not in text.upper() and "◁" not in text:
        return text
    parts: list[str] = []
    at = 0
    for start, end in sorted([*_analysis_spans(text), *_think_spans(text)]):
        if end > at:
            start = max(start, at)
            ledger.note(start, "think_block")
            parts += (text[at:start], " " * (end - start))
            at = end
    return "".join([*parts, text[at:]])


def _analysis_spans(text: str) -> Iterator[tuple[int, int]]:
    at = 0
    while (opened := _ANALYSIS.search(text, at)) is not None:
        closed = _CHANNEL_END.search(text, opened.end())
        if closed is None:
            raise cut_off(0, _OPEN)
        at = closed.start()
        yield opened.start(), at


def _think_spans(text: str) -> list[tuple[int, int]]:
    """Find the thinking as spans that do not overlap, in the order of the text."""
    spans: list[tuple[int, int]] = []
    opened = -1
    for tag, is_quoted in _tags(text):
        is_closing = bool(tag["close"] or tag["close2"] or tag["close3"]) or tag["mark"] == "end"
        if opened >= 0:
            if is_closing:
                spans.append((opened, tag.end()))
                opened = -1
        elif is_quoted:
            continue
        elif is_closing:
            spans = [(0, tag.end())]
        else:
            opened = tag.start()
    if opened >= 0:
        raise cut_off(0, _OPEN)
    return spans


def _tags(text: str) -> Iterator[tuple[re.Match[str], bool]]:
    """Yield think tags, each with whether it stands inside a string of its line."""
    seen, quotes = 0, 0
    for tag in _TAG.finditer(text):
        line = text.rfind("\n", seen, tag.start())
        if line >= 0:
            seen, quotes = line + 1, 0
        quotes += text.count('"', seen, tag.start())
        quotes -= text.count('\\"', seen, tag.start())
        seen = tag.start()
        yield tag, quotes % 2 == 1

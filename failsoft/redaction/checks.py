"""Checks of matched values: conditions that a pattern cannot express."""

import re
from collections.abc import Iterator
from pathlib import Path

from failsoft.redaction.re2_search import Span, set_matcher


def words_of(name: str) -> frozenset[bytes]:
    """Return the words of a list beside this file."""
    text = Path(__file__).with_name(name).read_text(encoding="utf-8")
    return frozenset(word.encode() for word in text.split())


PLACEHOLDERS = words_of("placeholders.txt")
EDGES = b"\"'`.,;:!?()[]{}<>*\\ \t\r\n\1"
FILLER = b"\1"
# References to a secret, or code that fetches it: not the secret itself.
REFERENCE = re.compile(
    rb"env:|file:|vault:|ssm:|secret:/|secretsmanager|arn:|op://|\$[({]|\$[A-Za-z_]+[0-9]*(?:$|[\s/:@,;)}\]\"'.&|])|%[({]|%[A-Z_]+%|\{\{|<[a-z]"
    rb"|(?:os|process|self|this|config|settings|env|args|opts|options|request|req|ctx|app"
    rb"|secrets|vars|var|local|data|params|props|form|user|cfg|conf|module|each|github"
    rb"|inputs|steps|Rails|System|Deno|Bun|import|std|event)\.[A-Za-z]"
    rb"|[A-Za-z_][A-Za-z_.]*\(|[A-Za-z_]+\[[\"'A-Za-z]|!(?:ref|vault|sub|getatt|env)\b|/(?:run|etc|var)/",
    re.IGNORECASE,
)
is_example = set_matcher(
    rb"(?i)x{6}|\*{3}|\.{3}|#{4}|0{8}|_here\b|-here\b|your[-_]|[-_]your|my[-_](?:secret|token|key|api|pass)"
    rb"|<[a-z_ -]+>|example|placeholder|dummy|redacted|changeme|change[-_]me"
    rb"|replace[-_]?(?:me|with)"
    rb"|insert[-_]|\btodo\b|fixme|removed|omitted|hidden|masked|sample[-_]|[-_]sample|notreal|not[-_]a[-_]"
)
UUID = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
IDENTIFIER = re.compile(rb"[A-Za-z_$][A-Za-z_]*(?:(?:\.|->|::|\?\.)[A-Za-z_]+)*[0-9]?")
WORDS = re.compile(rb"[A-Za-z][a-z]*(?:[ _.,-][A-Za-z][a-z]*)*")
ULID = re.compile(rb"(?i)[0-7][0-9A-HJKMNP-TV-Z]{25}$")
HASH = re.compile(rb"(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64}|[0-9a-f]{7,12})", re.IGNORECASE)
HUMPS = re.compile(rb"^[a-z]{2,}|[A-Z][a-z]{2,}|[A-Z]{2,5}(?=[A-Z][a-z]|$)")
VOWEL = re.compile(rb"[aeiouyAEIOUY]")
# Program words without a vowel.
SHORTENED = frozenset(
    b"http https html xml ctx str ptr cfg mgr msg src dst img btn css sql ssh tls ssl tmp cmd"
    b" txt pkg dbg svc mgmt cnt len fmt prv pwd ws db fn grp hdr js kb lck nn pg px rgb rpc".split()
)
PARTING = re.compile(rb"[-_.]")
PART = re.compile(rb"[A-Za-z0-9]+")
CASES = re.compile(rb"[A-Z]+|[^A-Z]+")
NUMBER = re.compile(rb"[0-9.]+[a-z]{0,3}|v?[0-9.]+|[0-9]+(?:st|nd|rd|th)")
LETTERS = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ'-_./,:"
NUMBERED_WORD = re.compile(rb"[A-Za-z]*[0-9]*|[0-9]+[A-Za-z]{0,3}|[vV]?[0-9]+(?:[a-z][0-9]*)?")


def strip(value: bytes) -> bytes:
    return value.strip(EDGES)


def without_foreign(body: bytes, start: int, end: int) -> Span:
    """Return the span without trailing words of other scripts, which are folded to `?`."""
    if body[end - 2 : end] != b"??":
        return start, end
    return start, start + len(body[start:end].rstrip(b"?"))


def is_placeholder(value: bytes) -> bool:
    """Whether a value is a word, a type name, an example or a mask instead of a secret."""
    text = strip(value).lower()
    if len(set(text)) < 3 or text in PLACEHOLDERS:
        return True
    return bool(is_example(value))


def is_reference(value: bytes) -> bool:
    return REFERENCE.match(value) is not None


def is_mixed(value: bytes) -> bool:
    return has_digit(value) and has_letter(value)


def has_digit(value: bytes) -> bool:
    return len(value.translate(None, b"0123456789")) < len(value)


def has_letter(value: bytes) -> bool:
    return value.lower() != value.upper()


def is_random(value: bytes) -> bool:
    """Whether a part mixes letters and digits unlike any name or version."""
    if UUID.fullmatch(value) or b"://" in value:
        return False
    parts = PART.findall(value)
    if any(len(part) >= 6 and _is_random_part(part) for part in parts):
        return True
    odd = sum(NUMBERED_WORD.fullmatch(part) is None for part in parts)
    return odd >= 2 and len(value) >= 12


def _is_random_part(part: bytes) -> bool:
    if NUMBERED_WORD.fullmatch(part):
        return len(part) >= 8 and is_shuffled(part)
    return is_mixed(part)


def is_shuffled(part: bytes) -> bool:
    """Whether letters change case more than words in camel case do."""
    return part.isalpha() and case_changes(part) >= 3 and not is_worded(part)


def is_worded(part: bytes) -> bool:
    """Whether letters are words in camel case, like type names."""
    if part.islower() or part.isupper() or part.istitle():
        return True
    return worded(part) >= len(part) - 1


def worded(part: bytes) -> int:
    """Return how many letters of a name in camel case are of words."""
    return sum(len(word) for word in HUMPS.findall(part) if _is_word(word))


def _is_word(hump: bytes) -> bool:
    return hump.isupper() or bool(VOWEL.search(hump)) or hump.lower() in SHORTENED


def case_changes(part: bytes) -> int:
    return max(0, len(CASES.findall(part)) - 1)


def is_password_like(value: bytes) -> bool:
    """Whether a word has a digit or a sign inside, which ordinary words lack."""
    text = strip(value)
    if len(text) < 5 or is_placeholder(text) or is_reference(text):
        return False
    if UUID.fullmatch(text) or not has_letter(text):
        return False
    if any(map(is_shuffled, PARTING.split(text))):
        return True
    if has_digit(text):
        return NUMBER.fullmatch(text) is None
    return len(text.translate(None, LETTERS)) > 0


def is_bearer(value: bytes) -> bool:
    """Whether a value has a digit, or is longer than any word."""
    if is_placeholder(value) or is_reference(value):
        return False
    return has_digit(value) or (len(value) >= 20 and not WORDS.fullmatch(value))


CARD_NUMBER = re.compile(
    rb"(?:(?<![0-9A-Za-z])|(?<=%B))(?<![0-9A-Za-z][.+_-])"
    rb"[2-6](?:(?: - |[ .-])?[0-9]){12,18}(?![0-9A-Fa-f])"
)
GAP = re.compile(rb"[ .-]")
# One digit before a point is a fraction.
LEAST_GROUP = 2
DIGITS = b"0123456789"
SEPARATORS = b" .-"
# First digits and the allowed lengths.
ISSUERS = (
    (b"4", (13, 16, 19)), (b"5", (16,)), (b"34", (15,)), (b"37", (15,)), (b"2", (16,)),
    (b"36", (14,)), (b"38", (14, 16)), (b"39", (14, 16)), (b"30", (14, 16)), (b"35", (16,)),
    (b"6", (16, 17, 18, 19)),
)  # fmt: skip


def find_cards(body: bytes, _low: bytes = b"") -> Iterator[Span]:
    """Return the spans of card numbers, grouped or not."""
    return (match.span() for match in CARD_NUMBER.finditer(body) if is_card(match.group()))


def is_card(value: bytes) -> bool:
    """Whether a number has the length of its issuer, one kind of separator and a Luhn sum."""
    digits = value.translate(None, SEPARATORS)
    lengths = next((allowed for head, allowed in ISSUERS if digits.startswith(head)), ())
    value = value.replace(b" - ", b"-")
    separators = set(value.translate(None, DIGITS))
    if separators and min(map(len, GAP.split(value))) < LEAST_GROUP:
        return False
    if len(digits) not in lengths or len(separators) > 1:
        return False
    return _sum([byte - 48 for byte in digits]) % 10 == 0


def _sum(digits: list[int]) -> int:
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return sum(digits[-1::-2]) + sum(doubled)

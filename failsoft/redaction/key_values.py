"""Values after the name of a secret: JSON, YAML, env, XML, URLs, headers, reprs, tables."""

import re
from functools import lru_cache

from failsoft.redaction.checks import (
    EDGES,
    HASH,
    IDENTIFIER,
    UUID,
    WORDS,
    case_changes,
    has_digit,
    is_mixed,
    is_placeholder,
    is_random,
    is_reference,
    is_shuffled,
    is_worded,
    strip,
    without_foreign,
)
from failsoft.redaction.re2_search import Span
from failsoft.redaction.secret_names import Strength, name_strength

NAME_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-"
LEFT = 48
MOST = 4_096
# The number of bytes of a bare value that are checked; fewer behind a name that is no certain
# sign, as `key=key=key=...` has a value behind each.
JUDGED, WEIGHED = 1_024, 256
# From the first letter of the word: the rest of the name, its closers, a separator.
NAME = re.compile(rb"[A-Za-z0-9_.-]{1,60}(?:\[[\"']?[A-Za-z0-9_-]{0,40}[\"']?\]?)?")
CLOSERS = re.compile(rb"[\\\"'`*\])]{0,6}")
SEPARATOR = re.compile(
    rb"\s{0,3}(?P<sign>:[ ]?[A-Za-z_<>\[\].|?&' ]{1,40}=(?!=)|::?=|=>|->|={1,3}|:|\|(?!\|)"
    rb"|,(?=[ \t]{0,3}[a-z]{0,2}[\"'`]))(?:</[a-z]{1,8}>)?[ \t]{0,30}"
)
# name="password" value="...", - name: password / value: ..., "password": {"value": ...
PAIRED = re.compile(
    rb"(?:\s{0,4}\{\s{0,20}(?:[a-z_]{3,20}\s{0,20}=[^\n{}]{0,120}\n\s{0,20}){0,4})?[,;]?\s{0,40}[{(]?\s{0,10}[\"']?(?:value|default|content|val|text|string|data|secret)[\"']?"
    rb"\s{0,4}[:=]{1,2}>?\s{0,4}",
    re.IGNORECASE,
)
ELEMENT = re.compile(
    rb"(?:</[a-z]{1,10}(?=>\s{0,20}<)|\s[^<>]{0,200})?>\s{0,20}(?:<[a-z]{1,10}>|<!\[CDATA\[|</[a-z]{1,10}>\s{0,20}<[a-z]{1,10}>|<value>\s{0,10})?"
    rb"([^<>\s][^<>]{0,4096})",
    re.IGNORECASE,
)
BLOCK = re.compile(
    rb"[|>][+-]?[ \t]{0,4}\r?\n[ \t]{1,20}([^\r\n]{3,4096}(?:\r?\n[ \t]{2,}[^\s:]{8,})*)"
)
OPENER = re.compile(
    rb"\s{0,40}(?:[bfruBFRU]{1,2}|(?:\[\])?[A-Za-z_.]{1,24}\("
    rb"|string\([0-9]{1,4}\) |\[\s{0,8}|@)?(\"\"\"|'''|[\"'`])"
)
# The argument of such a call is a name, not a secret.
FETCHED = re.compile(rb"(?i)(?:get|env|environ|lookup|fetch|prompt|input|require|read|load)\(")
INSIDE = {
    b'"': re.compile(rb'[^"\\\n]*(?:\\[^\n][^"\\\n]*)*'),
    b"'": re.compile(rb"[^'\\\n]*(?:(?:\\[^\n]|(?<=\w)'(?=\w))[^'\\\n]*)*"),
    b"`": re.compile(rb"[^`\n]*"),
}
BARE = re.compile(rb"[^\s\"'`<>,;&|()\[\]{}\\][^\s\"'`<>,;&|]*")
SEPARATING = (b"=", b":", b" ")
SHORTEST = 3
QUERY = (b"?", b"&")
GOES_ON = (b",", b";", b"&", b"|")
"""Signs that may be part of a value in the environment."""
REST_OF_WORD = re.compile(rb"[^\s\"'`<>]*")
# In escaped text, an escaped line break or the end of the text ends the word.
ESCAPED_LINE = re.compile(rb"(?:\\+[nr])+(?=[A-Za-z_][A-Za-z0-9_.-]*[ ]?[=:]|[\"'\s\[#]|$)")
SENTENCE = re.compile(rb"[.,]?[ \t]+[a-z(]")
ENVIRONMENT = re.compile(rb"(?:^|\n)[ \t]*(?:export |set |env |ENV |ARG |- )?[A-Z][A-Z0-9_]*$")
# Connection addresses have separate rules, which keep host and database.
ADDRESS = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*://|jdbc:|(?:[A-Za-z ]+=[^;=]*;){2}|host=")
SHORT_CODES = re.compile(rb"pin|otp|cvv|cvc|code|passcode", re.IGNORECASE)


def find_named(body: bytes, at: int) -> Span | None:
    """Return the span of the value, if the word at `at` is part of the name of a secret."""
    match = NAME.match(body, at)
    if match is None:
        return None
    strength, begin = _grade(body, at, match)
    if not strength:
        return None
    end = _close(body, match.end())
    is_cookie = match.group()[-6:].lower() == b"cookie"
    span = None if is_cookie else _read_separated(body, begin, end, strength)
    # A name that is followed by a separator has neither a paired value nor an element.
    if span or body[end : end + 1] in (b"=", b":"):
        return span
    paired = PAIRED.match(body, end)
    span = _read_value(body, paired.end(), strength) if paired else None
    return span if span or is_cookie else _read_element(body, begin, end, strength)


def _grade(body: bytes, at: int, match: re.Match[bytes]) -> tuple[Strength, int]:
    before = body[max(0, at - LEFT) : at]
    prefix = before[len(before.rstrip(NAME_BYTES)) :]
    if prefix.startswith(b"-D"):
        prefix = prefix[2:]
    name = prefix + match.group()
    strength = _strength(name)
    if strength < Strength.CERTAIN and not prefix and before.endswith(b" "):
        word = before[:-1]
        word = word[len(word.rstrip(NAME_BYTES)) :]
        strength = max(strength, _strength(word + b"_" + name))
    return strength, at - len(prefix)


@lru_cache(maxsize=4096)
def _strength(name: bytes) -> Strength:
    return name_strength(name.decode("ascii").strip("._-"))


def _close(body: bytes, end: int) -> int:
    if body[end : end + 1] in SEPARATING:
        return end
    closers = CLOSERS.match(body, end)
    return closers.end() if closers else end


def _read_separated(body: bytes, begin: int, end: int, strength: Strength) -> Span | None:
    match = SEPARATOR.match(body, end)
    if match is None:
        return None
    sign, at = match["sign"], match.end()
    # Colons also separate the parts of addresses and cloud resource names.
    if sign == b":" and (
        body[at : at + 2] == b"//"
        or body[begin - 3 : begin] == b"://"
        or b"arn:" in _word_before(body, begin, LEFT)
    ):
        return None
    if sign in (b"|", b",", b"->"):
        strength = min(strength, Strength.LIKELY)
    quoted = _read_quoted(body, at, strength)
    if quoted is not NOTHING:
        return quoted
    block = BLOCK.match(body, at) if body[at : at + 1] in (b"|", b">") else None
    if block:
        return _judged(body, block.span(1), strength)
    paired = PAIRED.match(body, at) if body[at : at + 1] == b"{" else None
    if paired:
        return _read_value(body, paired.end(), strength)
    return _read_bare(body, begin, at, sign, strength)


def _word_before(body: bytes, begin: int, reach: int) -> bytes:
    return b"".join(body[max(0, begin - reach) : begin].split()[-1:])


def _read_element(body: bytes, begin: int, end: int, strength: Strength) -> Span | None:
    before = body[max(0, begin - 12) : begin]
    if b"<" not in before:
        return None
    match = ELEMENT.match(body, end)
    if not match or match[1].startswith(b"/"):
        return None
    return _judged(body, match.span(1), strength)


def _read_value(body: bytes, at: int, strength: Strength) -> Span | None:
    quoted = _read_quoted(body, at, strength)
    if quoted is not NOTHING:
        return quoted
    match = BARE.match(body, at)
    return _judged(body, match.span(), strength) if match else None


NOTHING: Span | None = (-1, -1)


def _read_quoted(body: bytes, at: int, strength: Strength) -> Span | None:
    """Return the span of a quoted value; NOTHING without a quote. The end may be missing."""
    opener = OPENER.match(body, at)
    if opener is None:
        return NOTHING
    if FETCHED.search(opener.group()):
        return None
    quote = opener[1]
    if len(quote) == 3:
        closing = body.find(quote, opener.end(), opener.end() + MOST)
        end = closing if closing >= 0 else min(len(body), opener.end() + MOST)
        return _judged(body, (opener.end(), end), strength, is_quoted=True)
    # No more is weighed; with a second quote, each of many names would read to the end.
    inside = INSIDE[quote].match(body, opener.end(), opener.end() + MOST + 2)
    if inside is None or inside.start() == inside.end():
        return None
    return _judged(body, inside.span(), strength, is_quoted=True)


def _read_bare(body: bytes, begin: int, at: int, sign: bytes, strength: Strength) -> Span | None:
    at += body[at : at + 1] == b"["
    escape = body.find(b"\\", at, at + JUDGED)
    line = ESCAPED_LINE.search(body, escape, at + JUDGED) if escape >= 0 else None
    longest = line.start() if line else len(body)
    limit = at + (JUDGED if strength == Strength.CERTAIN else WEIGHED)
    last = min(longest, limit)
    match = BARE.match(body, at, last)
    if match is None:
        return None
    end = match.end()
    if end - at < SHORTEST and body[end : end + 1] not in GOES_ON:
        return None
    is_shouted = sign == b"=" and not body[at - 2 : at - 1].islower()
    if is_shouted and ENVIRONMENT.search(body[max(0, begin - 24) : at - 1]):
        rest = REST_OF_WORD.match(body, end, last)
        end = rest.end() if rest else end
    if body[begin - 1 : begin] in QUERY and b"://" in _word_before(body, begin, JUDGED):
        end = at + len(body[at:end].partition(b"#")[0])
    value = body[at:end]
    is_word = sign != b"=" and value.isalpha() and is_worded(value)
    if is_word and SENTENCE.match(body, end):
        return None
    if _is_code(value, body[end : end + 2], sign):
        return None
    span = _judged(body, (at, end), strength)
    if span is None or end < limit:
        return span
    # A value of this length is masked to its end.
    run = BARE.match(body, at, longest)
    return at, run.end() if run else end


def _is_code(value: bytes, after: bytes, sign: bytes) -> bool:
    """Whether a value is the name of a variable or a type."""
    inner = value.rstrip(b").]},:;")
    if not IDENTIFIER.fullmatch(inner) or not inner:
        return False
    if name_strength(inner.decode("ascii")) and not has_digit(inner):
        return True
    is_dotted = b"." in inner or b"->" in inner or b"::" in inner
    is_called = after[:1] in b"([" and after != b""
    is_typed = sign == b":" and (after == b" =" or after[:1] == b"|" or inner[:1].isupper())
    return is_dotted or is_called or (is_typed and len(inner) > 2 and is_worded(inner))


def _judged(body: bytes, span: Span, strength: Strength, is_quoted: bool = False) -> Span | None:
    start, end = span
    value = body[start : min(end, start + MOST)]
    if (len(value) < 80 and is_placeholder(value)) or ADDRESS.match(value):
        return None
    end = start + len(value.rstrip(b" \t\r\n").rstrip(b").]},:;\\") or value)
    start, end = without_foreign(body, start, end)
    value = body[start:end]
    if not strip(value) or not _is_secret(
        value, strength, is_quoted, body[max(0, start - 24) : start]
    ):
        return None
    return start, end


def _is_secret(value: bytes, strength: Strength, is_quoted: bool, before: bytes) -> bool:
    if is_placeholder(value) and not _is_short_code(value, before):
        return False
    if is_reference(value):
        return False
    if strength == Strength.CERTAIN:
        return len(value) >= SHORTEST and not _is_sentence(value)
    inner = value.strip(EDGES)
    if strength == Strength.LIKELY:
        return len(inner) >= 8 and _is_likely(inner)
    return len(inner) >= 16 and is_random(inner) and not HASH.fullmatch(inner)


def _is_likely(value: bytes) -> bool:
    if is_random(value) or is_shuffled(value) or UUID.fullmatch(value):
        return True
    if is_mixed(value):
        return not _is_slug(value) and (
            len(value) >= 12 or value.translate(None, NAME_BYTES + b"/:+=@,") != b""
        )
    return sum(is_shuffled(part) for part in re.split(rb"[-_.]", value)) > 0 or (
        len(value) >= 16 and case_changes(value) >= 5
    )


def _is_slug(value: bytes) -> bool:
    return re.fullmatch(rb"[a-z]+(?:[-_./:][a-z0-9.]+(?![a-z0-9.]))*[0-9]{0,3}", value) is not None


def _is_short_code(value: bytes, before: bytes) -> bool:
    return (
        SHORT_CODES.search(before) is not None and re.fullmatch(rb"[0-9]{3,8}", value) is not None
    )


def _is_sentence(value: bytes) -> bool:
    """Whether words are a sentence about a secret instead of a passphrase."""
    words = value.split()
    if len(words) < 3:
        return bool(WORDS.fullmatch(value)) and b" " in value and _has_plain_word(words)
    plain = sum(WORDS.fullmatch(word.strip(EDGES)) is not None for word in words)
    return plain * 2 > len(words) and _has_plain_word(words)


def _has_plain_word(words: list[bytes]) -> bool:
    return any(is_placeholder(word) for word in words if len(word) > 1)

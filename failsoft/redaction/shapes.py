"""Checks of shapes: headers, addresses, keys and command lines."""

import re
from collections.abc import Callable, Iterator

from failsoft.redaction.checks import (
    PART,
    ULID,
    UUID,
    case_changes,
    has_digit,
    is_bearer,
    is_mixed,
    is_password_like,
    is_placeholder,
    is_random,
    is_reference,
    worded,
    words_of,
)
from failsoft.redaction.prose_secrets import Match, is_stated_secret, trimmed
from failsoft.redaction.re2_search import Span
from failsoft.redaction.secret_names import Strength, name_strength


def pem(match: Match) -> Iterator[Span]:
    """Yield the spans of a key up to END, or to the end of its body, without line prefixes."""
    body = match.string
    run = PEM_BODY.match(body, match.end())
    last = run.end() if run else match.end()
    end = PEM_END.search(body, match.end(), last + 500)
    span_start = match.start()
    for prefix in PEM_PREFIX.finditer(body, match.end(), end.end() if end else last):
        yield span_start, prefix.start()
        span_start = prefix.end()
    yield span_start, end.end() if end else last


# Line prefixes of logs are kept.
PEM_PREFIX = re.compile(
    rb"\n[^\nA-Za-z+/=][^\n]{7,47}?[ \t>|:](?=[A-Za-z0-9+/=]{20,}[\s\\]|-----END)"
)

PEM_END = re.compile(rb"-{4}[ -]END[A-Z0-9 ]{0,30}(?:PRIVATE|SECRET) KEY[A-Z ]{0,10}-{0,5}")
# Lines may have a prefix, as in a log or a quoted mail.
PEM_BODY = re.compile(
    rb"(?:(?<=\n)[^\nA-Za-z+/=][^\n]{0,47}?(?=[ \t>|:][A-Za-z0-9+/=]{20,}[\s\\]|[ \t]-----END)"
    rb"|\n|[^\S\n]+|[\\\"'+,;]+|[rn]\b|<br ?/?>"
    rb"|(?:Version|Comment|Proc-Type|DEK-Info|Hash|Charset):[^\n]{0,100}"
    rb"|[A-Za-z0-9+/=]{20,}|[A-Za-z0-9+/=]{1,19}(?=[\s\\\"']|$|-)|(?<=[ \t])[>|:] )*"
)


def pem_tail(match: Match) -> Span | None:
    """Return the lines of a key before its END, whose beginning was cut off."""
    before = match.string[max(0, match.start() - LONGEST_TAIL) : match.start()]
    lines = PEM_TAIL.match(before[::-1])
    return (match.start() - lines.end(), match.end()) if lines else None


LONGEST_TAIL = 16_384
# From the last line to the first; one at least is long.
PEM_TAIL = re.compile(
    rb"(?:[\s\\\"'+,;>|nr]{1,40}[A-Za-z0-9+/=]{1,39})?"
    rb"(?:[\s\\\"'+,;>|nr]{0,40}[A-Za-z0-9+/=]{40,})+"
)


def header(match: Match) -> Span | None:
    """Return the value of a header, unless it is a word or a reference."""
    at = match.lastindex or 0
    value = match[at]
    if is_placeholder(value) or is_reference(value) or value.lower() in SCHEMES:
        return None
    return None if value.isalpha() and len(value) < 12 else trimmed(match.string, match.span(at))


PAIR = re.compile(rb"([A-Za-z0-9_.%-]{1,80})=([^;,\s\"']{4,})")
ATTRIBUTES = frozenset((b"path", b"domain", b"expires", b"max-age", b"samesite", b"priority"))


def cookies(match: Match) -> Iterator[Span]:
    """Yield the values of a cookie header, except for plain words and attributes."""
    for pair in PAIR.finditer(match.string, *match.span(1)):
        value = pair[2]
        if (
            pair[1].lower() not in ATTRIBUTES
            and (name_strength(pair[1].decode("ascii")) or has_digit(value) or len(value) > 12)
            and not is_placeholder(value)
        ):
            yield pair.span(2)


SCHEMES = {b"bearer", b"basic", b"token", b"digest"}


def bearer(match: Match) -> Span | None:
    """Return a bearer token, unless it is an ordinary word."""
    return trimmed(match.string, match.span(1)) if is_bearer(match[1]) else None


def _spanning(is_secret: Callable[[bytes], bool]) -> Callable[[Match], Span | None]:
    """Return the check that returns the first group if its value may be a secret."""
    return lambda match: match.span(1) if is_secret(match[1]) else None


mixed = _spanning(lambda value: is_mixed(value) and not is_placeholder(value))
# The form of base64 of a user and password.
basic = _spanning(lambda value: is_random(value) and not is_placeholder(value))
plain = _spanning(lambda value: not (is_placeholder(value) or is_reference(value)))


def url_password(match: Match) -> Span | None:
    """Return the password of an address; a port before a path is no password."""
    start, end = match.span(1)
    value = match.string[start : end - 1]
    # A later @ is part of the path if a host precedes it.
    host = HOST_BETWEEN.match(value)
    if host:
        value = host[1]
        end = start + len(value) + 1
    if re.match(rb"[0-9]{1,5}[/?#,]", value) or is_reference(value) or is_placeholder(value):
        return None
    return start, end - 1


HOST_BETWEEN = re.compile(
    rb"([^/@]+)@(?:[A-Za-z0-9-]+\.[A-Za-z0-9.-]+|localhost|[A-Za-z0-9.-]+:[0-9]{2,5})/"
)
HOST_END = re.compile(rb"[0-9]{1,5}(?:[.:].*)?|[a-z]+")
# An address that ends before its @.
cut_password = _spanning(
    lambda value: not (HOST_END.fullmatch(value) or is_placeholder(value) or is_reference(value))
)


def _search_before(match: Match, pattern: re.Pattern[bytes], reach: int) -> Match | None:
    return pattern.search(match.string, max(0, match.start() - reach), match.start())


def leading_pair(match: Match) -> Span | None:
    """Return the password of user:password or user/password before the @."""
    # Oracle writes user/password@//host.
    pair = _search_before(match, ORACLE_PAIR, 120) if match.group() == b"@//" else None
    pair = pair or _search_before(match, LEADING_PAIR, 120)
    is_secret = pair and not (is_placeholder(pair[1]) or is_reference(pair[1]))
    return pair.span(1) if pair and is_secret else None


LEADING_PAIR = re.compile(rb"[A-Za-z0-9_.-]{1,60}[:/]([^\s\"'`:@]{3,100})$")
ORACLE_PAIR = re.compile(rb"[A-Za-z0-9_.-]{1,60}/([^\s\"'`:@/]{3,100})$")


def _nearby(word: bytes) -> Callable[[Match], Span | None]:
    """Return the check of a private part of a key, whose type is nearby."""

    def check(match: Match) -> Span | None:
        near = match.string[max(0, match.start() - NEAR) : match.end() + NEAR]
        return mixed(match) if word in near else None

    return check


NEAR = 2_048
jwk, rsa_xml = _nearby(b"kty"), _nearby(b"RSAKeyValue")


def _preceded(
    pattern: bytes, reach: int, is_secret: Callable[[bytes, Match], bool] = lambda *_: True
) -> Callable[[Match], Span | None]:
    """Return the check of a secret whose mark is matched, and which begins before its mark.

    `is_secret` gets what stands before the mark, and the match.
    """
    before_mark = re.compile(pattern + rb"$")

    def check(match: Match) -> Span | None:
        before = _search_before(match, before_mark, reach)
        is_whole = before and is_secret(before.group(), match)
        return (before.start(), match.end()) if before and is_whole else None

    return check


before_hex = _preceded(
    rb"(?:(?:AA|eu01xx)[0-9a-f]{30,40}|[0-9a-f]{32}[0-9A-Fa-f]{4}|(?<![0-9a-f])[0-9a-f]{32})", 48
)
before_mark = _preceded(rb"[A-Za-z0-9]{2,10}_[A-Za-z0-9]{29}", 88)
signed_key = _preceded(rb"[A-Za-z0-9+/_-]{28,}", 88, lambda before, _: is_random(before))
telegram = _preceded(rb"[0-9]{6,11}", 11, lambda _, match: is_mixed(match[1]))
# Of three parts, the first an id in base64.
discord = _preceded(rb"[MNO][A-Za-z0-9_-]{22,27}", 28, lambda before, _: is_mixed(before))


def headed(match: Match) -> Span | None:
    """Return a token of a provider that no rule names: random characters behind a head.

    A head is words, of which the last says what follows. Where it is a resource (a run, a commit),
    or the name that the value is given to is one, an id or a digest follows, not a token.
    """
    body = match.string
    start, end = match.span(1)
    end = start + len(body[start:end].rstrip(b"-_."))
    spans = [part.span() for part in PART.finditer(body, start, end)]
    count = next((n for n, at in enumerate(spans) if not HEAD.fullmatch(body[slice(*at)])), 0)
    if not 0 < count <= MOST_WORDS or FILE_END.search(body, start, end):
        return None
    word = body[slice(*spans[count - 1])].rstrip(b"0123456789").lower()
    named = RESOURCE_NAME.search(body[max(0, start - LONGEST_NAME) : start])
    parts = [body[a:b] for a, b in spans[count:] if _is_wild(body, a, b)]
    is_long = end - spans[count][0] >= LEAST_MIXED
    if not is_long or named or word in RESOURCES or not _is_drawn(b"".join(parts)):
        return None
    return start, end


MOST_WORDS = 4
LONGEST_NAME = 40
HEAD_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"
HEAD = re.compile(
    rb"(?:[A-Z]?[a-z]{1,14}|[A-Z]{2,14})[0-9]{0,3}"
    rb"|v?[0-9]{1,4}[A-Za-z]{0,5}[0-9]{0,3}|[A-Za-z0-9]{1,2}"
)
FILE_END = re.compile(rb"\.[A-Za-z]{2,7}$")
# What is given to such a name is no token.
RESOURCE_NAME = re.compile(
    rb"(?i)(?:sha[0-9]*|md5|hash|digest|checksum|crc|etag|integrity|id|uuid|cursor|page|offset"
    rb"|trace|span|blob|chunk|layer|image|img|file|object|commit|rev|build|nonce|asset|upload)"
    rb"[\"']?[ \t]?[=:][ \t]?[\"']?$"
)
RESOURCES = words_of("resources.txt")
HEX = re.compile(rb"[0-9a-fA-F]+")
LEAST_MIXED, LEAST_LOWER, LEAST_HEX = 20, 24, 32
SHORTEST_WILD = 6


def _is_wild(body: bytes, start: int, end: int) -> bool:
    """Whether a part of a token is no word, no version, and no digest at the end of a name."""
    part = body[start:end]
    if len(part) < SHORTEST_WILD or HEAD.fullmatch(part):
        return False
    return HEX.fullmatch(part) is None or body[start - 1 : start] == b"_"


def _is_drawn(run: bytes) -> bool:
    """Whether the characters were drawn by chance, and are as many as in a token."""
    if not (run.islower() or run.isupper()):
        return len(run) >= MANY and _is_jumbled(run)
    least = LEAST_HEX if HEX.fullmatch(run) else LEAST_LOWER
    return len(run) >= least and not ULID.match(run) and len(NUMBERS.findall(run)) >= MANY_NUMBERS


def paired(match: Match) -> Span | None:
    """Return a secret with the id that it belongs to, before a point or a colon."""
    identifier, _, secret = match[1].replace(b":", b".").rpartition(b".")
    is_id = UUID.search(identifier) or any(map(_is_drawn_id, PART.findall(identifier)))
    is_secret = not UUID.search(secret) and _is_drawn(b"".join(PART.findall(secret)))
    return match.span(1) if is_id and is_secret else None


def path_key(match: Match) -> Span | None:
    """Return a key that is a part of a path, behind a part that says so."""
    parts = PART.findall(match[1])
    is_id = UUID.search(match[1]) or FILE_END.search(match.string, match.start(), match.end())
    return None if is_id or not _is_drawn(b"".join(parts)) else match.span(1)


def _is_drawn_id(part: bytes) -> bool:
    if len(part) < SHORTEST_WILD or HEAD.fullmatch(part) or not is_mixed(part):
        return False
    is_one_case = part.islower() or part.isupper()
    return not is_one_case or (len(part) >= LEAST_HEX and HEX.fullmatch(part) is not None)


def sized(match: Match) -> Span | None:
    """Return a token without a head, known by its length, that is part of nothing else."""
    is_inside = match.string[max(0, match.start() - 1) : match.start()].strip(HEAD_BYTES + b"+/.")
    at_start = match.start() == 0 or is_inside
    return match.span(1) if at_start and _is_jumbled(match[1]) else None


def _is_jumbled(run: bytes) -> bool:
    """Whether letters of both cases and digits follow each other by chance, not as words."""
    if not has_digit(run) or run.islower() or run.isupper():
        return False
    letters = run.translate(None, b"0123456789")
    if len(NUMBERS.findall(run)) >= MANY_NUMBERS or 2 * len(TURNS.findall(run)) > len(run) >= MANY:
        return True
    return 4 * worded(letters) < 3 * len(letters)


MANY_NUMBERS, MANY = 3, 16
TURNS = re.compile(rb"[a-z]+|[A-Z]+|[0-9]+")
NUMBERS = re.compile(rb"[0-9]+")


def azure(match: Match) -> Span | None:
    return max(0, match.start() - 3), match.end()


def option(match: Match) -> Span | None:
    """Return the value of a command option with the name of a secret."""
    strength = name_strength(match[1].decode("ascii"))
    value = match[2].rstrip(b".,;)\"'`")
    if strength < Strength.LIKELY or not is_password_like(value):
        return None
    return match.start(2), match.start(2) + len(value)


def said_before(match: Match) -> Span | None:
    """Return the word before " as the password"."""
    start = max(0, match.start() - 210)
    before = match.string[start : match.start()].rstrip(b" ,;-")
    before = before[: max(len(before.rstrip(WORD_ENDS)), len(before) - 3)]
    word_start = 1 + max(before.rfind(sign) for sign in WORD_ENDS[:-1])
    word = before[word_start:]
    if len(word) < SHORTEST_WORD or not is_stated_secret(word, strong=False):
        return None
    return start + word_start, start + word_start + len(word.rstrip(b".,;:"))


WORD_ENDS = b" \t\r\n\"'`<>()*"
SHORTEST_WORD = 5
# The group of `command` whose option has other meanings in other programs.
LOOSE_OPTION = 6


def command(match: Match) -> Span | None:
    """Return the password in an option of a known command."""
    at = match.lastindex or 0
    value = match[at]
    if not at or is_placeholder(value) or is_reference(value):
        return None
    line = match.string[match.string.rfind(b"\n", 0, match.start()) + 1 : match.start()]
    if at == LOOSE_OPTION and not (
        is_password_like(value)
        and re.search(rb"mysql|mariadb|login|sshpass|redis-cli|psql|7z|zip|unrar|smb|\brar\b", line)
    ):
        return None
    return None if value.isdigit() or value[:1] == b"/" else match.span(at)


# A password in the settings of a server or a router.
setting = _spanning(
    lambda value: (
        (is_password_like(value) or has_digit(value) or case_changes(value) > 1)
        and not is_placeholder(value)
    )
)
CHECKS: dict[str, Callable[[Match], Span | None]] = {
    "header": header, "bearer": bearer, "basic": basic, "mixed": mixed,
    "not_placeholder": plain, "url_password": url_password, "cut_password": cut_password,
    "leading_pair": leading_pair, "telegram": telegram, "discord": discord, "azure": azure,
    "jwk": jwk, "rsa_xml": rsa_xml, "before_hex": before_hex, "random": _spanning(is_random),
    "signed_key": signed_key, "headed": headed, "paired": paired, "sized": sized,
    "path_key": path_key, "pem_tail": pem_tail,
    "before_mark": before_mark,
    "setting": setting, "option": option, "said_before": said_before, "command": command,
}  # fmt: skip
EACH: dict[str, Callable[[Match], Iterator[Span]]] = {"cookies": cookies, "pem": pem}

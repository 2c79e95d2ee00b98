"""Second opinions on shapes: headers, addresses, keys and what commands show."""

import re
from collections.abc import Callable, Iterator

from failsoft.redaction.checks import (
    PLACEHOLDERS,
    case_changes,
    has_digit,
    is_bearer,
    is_mixed,
    is_password_like,
    is_placeholder,
    is_random,
    is_reference,
    strip,
)
from failsoft.redaction.prose_secrets import Found, is_said, trimmed
from failsoft.redaction.re2_search import Span
from failsoft.redaction.secret_names import Strength, name_strength


def pem(found: Found) -> Iterator[Span]:
    """Return what is to END, or as far as there is only the body of a key, line by line."""
    body = found.string
    run = PEM_BODY.match(body, found.end())
    last = run.end() if run else found.end()
    end = PEM_END.search(body, found.end(), last + 500)
    begun = found.start()
    for prefix in PEM_PREFIX.finditer(body, found.end(), end.end() if end else last):
        yield begun, prefix.start()
        begun = prefix.end()
    yield begun, end.end() if end else last


# What a log puts before each line is kept.
PEM_PREFIX = re.compile(
    rb"\n[^\nA-Za-z+/=][^\n]{7,47}?[ \t>|:](?=[A-Za-z0-9+/=]{20,}[\s\\]|-----END)"
)

PEM_END = re.compile(rb"-{4}[ -]END[A-Z0-9 ]{0,30}(?:PRIVATE|SECRET) KEY[A-Z ]{0,10}-{0,5}")
# Lines may have something before them, as in a log or a quoted mail.
PEM_BODY = re.compile(
    rb"(?:(?<=\n)[^\nA-Za-z+/=][^\n]{0,47}?(?=[ \t>|:][A-Za-z0-9+/=]{20,}[\s\\]|[ \t]-----END)"
    rb"|\n|[^\S\n]+|[\\\"'+,;]+|[rn]\b|<br ?/?>"
    rb"|(?:Version|Comment|Proc-Type|DEK-Info|Hash|Charset):[^\n]{0,100}"
    rb"|[A-Za-z0-9+/=]{20,}|[A-Za-z0-9+/=]{1,19}(?=[\s\\\"']|$|-)|(?<=[ \t])[>|:] )*"
)


def header(found: Found) -> Span | None:
    """Refuse words about a header and references."""
    at = found.lastindex or 0
    value = found[at]
    if is_placeholder(value) or is_reference(value) or value.lower() in SCHEMES:
        return None
    return None if value.isalpha() and len(value) < 12 else trimmed(found.string, found.span(at))


PAIR = re.compile(rb"([A-Za-z0-9_.%-]{1,80})=([^;,\s\"']{4,})")
ATTRIBUTES = frozenset((b"path", b"domain", b"expires", b"max-age", b"samesite", b"priority"))


def cookies(found: Found) -> Iterator[Span]:
    """Return each value of a cookie header that is no plain word or attribute."""
    for pair in PAIR.finditer(found.string, *found.span(1)):
        value = pair[2]
        if (
            pair[1].lower() not in ATTRIBUTES
            and (name_strength(pair[1].decode("ascii")) or has_digit(value) or len(value) > 12)
            and not is_placeholder(value)
        ):
            yield pair.span(2)


SCHEMES = {b"bearer", b"basic", b"token", b"digest"}


def bearer(found: Found) -> Span | None:
    """Refuse people who bear something."""
    return trimmed(found.string, found.span(1)) if is_bearer(found[1]) else None


def _spanning(is_secret: Callable[[bytes], bool]) -> Callable[[Found], Span | None]:
    """Return the check that takes the first group where its value may be a secret."""
    return lambda found: found.span(1) if is_secret(found[1]) else None


mixed = _spanning(lambda value: is_mixed(value) and not is_placeholder(value))
# What base64 of a pair looks like.
basic = _spanning(lambda value: is_random(value) and not is_placeholder(value))
plain = _spanning(lambda value: not (is_placeholder(value) or is_reference(value)))


def url_password(found: Found) -> Span | None:
    """Cut at the last @ of the address; a port before a path is no password."""
    start, end = found.span(1)
    value = found.string[start : end - 1]
    # A later @ is part of the path where what is between looks like a host.
    host = HOST_BETWEEN.match(value)
    if host:
        value = host[1]
        end = start + len(value) + 1
    if re.match(rb"[0-9]{1,5}[/?#,]", value) or strip(value).lower() in PLACEHOLDERS:
        return None
    if is_reference(value) or is_placeholder(value) or value.strip(b"\1") == b"":
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


def _left(found: Found, pattern: re.Pattern[bytes], reach: int) -> Found | None:
    """Return what a pattern finds right before a match, in at most so many bytes."""
    return pattern.search(found.string, max(0, found.start() - reach), found.start())


def leading_pair(found: Found) -> Span | None:
    """A pair user:password or user/password before the @."""
    # Oracle writes user/password@//host.
    pair = _left(found, ORACLE_PAIR, 120) if found.group() == b"@//" else None
    pair = pair or _left(found, LEADING_PAIR, 120)
    is_secret = pair and not (is_placeholder(pair[1]) or is_reference(pair[1]))
    return pair.span(1) if pair and is_secret else None


LEADING_PAIR = re.compile(rb"[A-Za-z0-9_.-]{1,60}[:/]([^\s\"'`:@]{3,100})$")
ORACLE_PAIR = re.compile(rb"[A-Za-z0-9_.-]{1,60}/([^\s\"'`:@/]{3,100})$")


def jwk(found: Found) -> Span | None:
    """A private part of a JSON Web Key, which says its type near by."""
    near = found.string[max(0, found.start() - NEAR) : found.end() + NEAR]
    return mixed(found) if b"kty" in near else None


def rsa_xml(found: Found) -> Span | None:
    """A private part of an RSA key in XML."""
    near = found.string[max(0, found.start() - NEAR) : found.start()]
    return mixed(found) if b"RSAKeyValue" in near else None


def before_hex(found: Found) -> Span | None:
    """A key in hex that ends with what names its maker."""
    digits = _left(found, HEX_KEY, 36)
    return (digits.start(), found.end()) if digits else None


def signed_key(found: Found) -> Span | None:
    """A key whose maker put a mark near its end: what stands before it is random, too."""
    before = _left(found, KEY_RUN, LONGEST_SIGNED)
    return (before.start(), found.end()) if before and is_mixed(before.group()) else None


def before_mark(found: Found) -> Span | None:
    """A key that ends with the mark of its maker."""
    before = _left(found, WORD_RUN, LONGEST_SIGNED)
    return (before.start(), found.end()) if before else None


LONGEST_SIGNED = 88
KEY_RUN = re.compile(rb"[A-Za-z0-9+/]{28,}$")
WORD_RUN = re.compile(rb"[A-Za-z0-9]{2,10}_[A-Za-z0-9]{29}$")
NEAR = 2_048
HEX_KEY = re.compile(rb"(?:[0-9a-f]{36}|(?<![0-9a-f])[0-9a-f]{32})$")
TELEGRAM_ID = re.compile(rb"[0-9]{6,11}$")
DISCORD_ID = re.compile(rb"[MNO][A-Za-z0-9_-]{22,27}$")


def telegram(found: Found) -> Span | None:
    """A number of 6 to 11 digits stands before."""
    digits = _left(found, TELEGRAM_ID, 11)
    return (digits.start(), found.end()) if digits and is_mixed(found[1]) else None


def discord(found: Found) -> Span | None:
    """Three parts, the first of them an id in base64."""
    first = _left(found, DISCORD_ID, 28)
    return (first.start(), found.end()) if first and is_mixed(first.group()) else None


def azure(found: Found) -> Span | None:
    """Three characters stand before the mark of a client secret."""
    return max(0, found.start() - 3), found.end()


def option(found: Found) -> Span | None:
    """An option of a command that is named like a secret."""
    strength = name_strength(found[1].decode("ascii"))
    value = found[2].rstrip(b".,;)\"'`")
    if strength < Strength.LIKELY or not is_password_like(value):
        return None
    return found.start(2), found.start(2) + len(value)


def said_before(found: Found) -> Span | None:
    """The word before " as the password"."""
    start = max(0, found.start() - 210)
    left = found.string[start : found.start()].rstrip(b" ,;-")
    left = left[: max(len(left.rstrip(WORD_ENDS)), len(left) - 3)]
    begun = 1 + max(left.rfind(sign) for sign in WORD_ENDS[:-1])
    word = left[begun:]
    if len(word) < SHORTEST_WORD or not is_said(word, strong=False):
        return None
    return start + begun, start + begun + len(word.rstrip(b".,;:"))


WORD_ENDS = b" \t\r\n\"'`<>()*"
SHORTEST_WORD = 5
# The group of `command` that any program may mean something else by.
LOOSE_OPTION = 6


def command(found: Found) -> Span | None:
    """The password that an option of a known command carries."""
    at = found.lastindex or 0
    value = found[at]
    if not at or is_placeholder(value) or is_reference(value):
        return None
    line = found.string[found.string.rfind(b"\n", 0, found.start()) + 1 : found.start()]
    if at == LOOSE_OPTION and not (
        is_password_like(value)
        and re.search(rb"mysql|mariadb|login|sshpass|redis-cli|psql|7z|zip|unrar|smb|\brar\b", line)
    ):
        return None
    return None if value.isdigit() or value[:1] == b"/" else found.span(at)


# A password in the settings of a server or a router.
setting = _spanning(
    lambda value: (
        (is_password_like(value) or has_digit(value) or case_changes(value) > 1)
        and not is_placeholder(value)
    )
)
CHECKS: dict[str, Callable[[Found], Span | None]] = {
    "header": header, "bearer": bearer, "basic": basic, "mixed": mixed,
    "not_placeholder": plain, "url_password": url_password, "cut_password": cut_password,
    "leading_pair": leading_pair, "telegram": telegram, "discord": discord, "azure": azure,
    "jwk": jwk, "rsa_xml": rsa_xml, "before_hex": before_hex, "random": _spanning(is_random),
    "signed_key": signed_key, "before_mark": before_mark, "setting": setting,
    "option": option, "said_before": said_before, "command": command,
}  # fmt: skip
EACH: dict[str, Callable[[Found], Iterator[Span]]] = {"cookies": cookies, "pem": pem}

"""Secrets told in sentences, and ones that commands and addresses show."""

import re
from collections.abc import Callable, Iterator

from diagnostics.core.redaction.checks import (
    EDGES,
    PLACEHOLDERS,
    has_digit,
    is_bearer,
    is_mixed,
    is_password_like,
    is_placeholder,
    is_random,
    is_reference,
    strip,
)
from diagnostics.core.secret_names import Strength, name_strength

Span = tuple[int, int]
Found = re.Match[bytes]

VERB = (
    rb"(?:is|was|are|equals|becomes|to|be|now|being|with|typed|used|use|using|entered|entering|as"
    rb"|remains|got|gave|ist|lautet|est|es|called|reads|says|namely|sent|set|=|:|->|of)"
)
AFTER = re.compile(
    rb"[a-z]{0,2}[\"'`)*]{0,3},?(?:[ \t]+\(?[a-z0-9_.'-]{1,24}\)?,?){0,6}?(?:[ \t]+"
    + VERB
    + rb"|:)[ \t:]{1,4}(?:(?:now|currently|still|just|simply|set to|this|actually|always)"
    rb"[ \t:]{1,3})?"
    rb"([\"'`(*]{0,3})([^\s\"'`<>]{4,200})",
    re.IGNORECASE,
)
DIRECT = re.compile(rb"s?,?[ \t]+[\"'`(*]{0,3}([^\s\"'`<>()]{5,200})", re.IGNORECASE)
NUMBERED = re.compile(
    rb"[A-Za-z]?(?:[a-z]{1,6}|[A-Z]{1,6})[0-9]{1,4}|[A-Za-z]?[a-z]{7,}[0-9]{1,2}|[A-Za-z]+[-_][0-9]{1,4}|[0-9]+[-/:.][0-9.:/-]+|.*\.(?:com|org|net|io|dev|py|js|txt|json|ya?ml)|/.*"
)
BEFORE = re.compile(rb"[\"'`(*]{0,3}([^\s\"'`<>()]{5,200})[\"'`)*]{0,3}$")
KNOWN_AS_SECRET = (b"passw", b"passphrase", b"passcode", b"pwd", b"kennwort")


def find_spoken(body: bytes, at: int) -> Span | None:
    """Give the span of the word that a sentence says is the secret named at `at`."""
    at += body[at : at + 1] == b"_"
    if at and body[at - 1 : at].isalpha() and not _is_hump(body, at):
        return None
    word = re.compile(rb"[a-z]+", re.IGNORECASE).match(body, at)
    if word is None:
        return None
    named = word.group().lower()
    strong = named.startswith(KNOWN_AS_SECRET) or (
        named == b"pass" and body[at - 1 : at] == b"_"
    )
    if not strong and not _is_secret_word(body, at, named):
        return None
    direct = DIRECT.match(body, word.end())
    if direct and _is_said(direct[1], strong):
        return _trimmed(body, direct.span(1))
    said = AFTER.match(body, word.end(), word.end() + 400)
    if said and (_is_said(said[2], strong) or _is_quoted_word(said, strong)):
        return _trimmed(body, said.span(2))
    return None


def _is_secret_word(body: bytes, at: int, named: bytes) -> bool:
    if not named.startswith((b"key", b"code")):
        return True
    before = body[max(0, at - 16) : at].lower().rstrip(b" -_")
    return before.endswith(
        (
            b"functions",
            b"api",
            b"access",
            b"secret",
            b"private",
            b"license",
            b"pin",
            b"security",
            b"verification",
            b"encryption",
            b"account",
            b"master",
        )
    )


def _is_hump(body: bytes, at: int) -> bool:
    return body[at : at + 1].isupper() and body[at - 1 : at].islower()


def _is_said(value: bytes, strong: bool) -> bool:
    inner = strip(value)
    if not is_password_like(inner):
        return False
    if len(inner) >= 20 and is_random(inner):
        return True
    if NUMBERED.fullmatch(inner):
        return strong and re.fullmatch(rb"[a-zA-Z]{4,}[0-9]{1,4}", inner) is not None
    return strong or is_mixed(inner) or len(inner) >= 8


def _is_quoted_word(said: Found, strong: bool) -> bool:
    inner = strip(said[2])
    return (
        strong
        and bool(said[1])
        and len(inner) >= 6
        and not (is_placeholder(inner) or is_reference(inner))
    )


def _trimmed(body: bytes, span: Span) -> Span:
    value = body[span[0] : span[1]]
    return span[0], span[0] + len(value.rstrip(b".,;:)]}*?") or value)


def pem(found: Found) -> Span | None:
    """Mask to END, or as far as there is nothing but the body of a key."""
    body = found.string
    run = PEM_BODY.match(body, found.end())
    last = run.end() if run else found.end()
    end = PEM_END.search(body, found.end(), last + 500)
    return found.start(), end.end() if end else last


PEM_END = re.compile(
    rb"-----END[A-Z0-9 ]{0,30}(?:PRIVATE|SECRET) KEY[A-Z ]{0,10}-{0,5}"
)
# Lines may have something before them, as in a log or a quoted mail.
PEM_BODY = re.compile(
    rb"(?:(?<=\n)[^\nA-Za-z+/=][^\n]{0,47}?(?=[ \t>|:][A-Za-z0-9+/=]{20,}[\s\\]|[ \t]-----END)"
    rb"|[\s\\\"'+,;]|[rn]\b|(?:Version|Comment|Proc-Type|DEK-Info|Hash|Charset):[^\n]{0,100}"
    rb"|[A-Za-z0-9+/=]{20,}|[A-Za-z0-9+/=]{1,19}(?=[\s\\\"']|$|-)|(?<=[ \t])[>|:] )*+"
)


def header(found: Found) -> Span | None:
    """Refuse words about a header and references."""
    at = found.lastindex or 0
    value = found[at]
    if is_placeholder(value) or is_reference(value) or value.lower() in SCHEMES:
        return None
    return (
        None
        if value.isalpha() and len(value) < 12
        else _trimmed(found.string, found.span(at))
    )


PAIR = re.compile(rb"([A-Za-z0-9_.%-]{1,80})=([^;,\s\"']{4,})")
ATTRIBUTES = frozenset(
    (b"path", b"domain", b"expires", b"max-age", b"samesite", b"priority")
)


def cookies(found: Found) -> Iterator[Span]:
    """Give each value of a cookie header that is no plain word or attribute."""
    for pair in PAIR.finditer(found.string, *found.span(1)):
        value = pair[2]
        if (
            pair[1].lower() not in ATTRIBUTES
            and (
                name_strength(pair[1].decode("ascii"))
                or has_digit(value)
                or len(value) > 12
            )
            and not is_placeholder(value)
        ):
            yield pair.span(2)


SCHEMES = {b"bearer", b"basic", b"token", b"digest"}


def bearer(found: Found) -> Span | None:
    """Refuse people who bear something."""
    return _trimmed(found.string, found.span(1)) if is_bearer(found[1]) else None


def basic(found: Found) -> Span | None:
    """Ask for what base64 of a pair looks like."""
    return (
        found.span(1) if is_random(found[1]) and not is_placeholder(found[1]) else None
    )


def mixed(found: Found) -> Span | None:
    """Ask for a digit beside letters."""
    return (
        found.span(1) if is_mixed(found[1]) and not is_placeholder(found[1]) else None
    )


def plain(found: Found) -> Span | None:
    """Refuse placeholders and references."""
    value = found[1]
    return None if is_placeholder(value) or is_reference(value) else found.span(1)


def url_password(found: Found) -> Span | None:
    """Cut at the last @ of the address; a port before a path is no password."""
    start, end = found.span(1)
    value = found.string[start : end - 1]
    if re.match(rb"[0-9]{1,5}[/?#,]", value) or strip(value).lower() in PLACEHOLDERS:
        return None
    if is_reference(value) or is_placeholder(value) or value.strip(b"\1") == b"":
        return None
    return start, end - 1


def cut_password(found: Found) -> Span | None:
    """An address that ends before its @."""
    value = found[1]
    is_host = re.fullmatch(rb"[0-9]{1,5}(?:[.:].*)?|[a-z]+", value)
    return (
        None
        if is_host or is_placeholder(value) or is_reference(value)
        else found.span(1)
    )


def leading_pair(found: Found) -> Span | None:
    """A pair user:password or user/password before the @."""
    start = max(0, found.start() - 120)
    pair = re.search(
        rb"[A-Za-z0-9_.-]{1,60}[:/]([^\s\"'`:@]{3,100})$",
        found.string[start : found.start()],
    )
    if pair is None or is_placeholder(pair[1]) or is_reference(pair[1]):
        return None
    return start + pair.start(1), start + pair.end(1)


def telegram(found: Found) -> Span | None:
    """A number of 6 to 11 digits stands before."""
    start = found.start()
    digits = re.search(rb"[0-9]{6,11}$", found.string[max(0, start - 11) : start])
    return (
        (start - len(digits.group()), found.end())
        if digits and is_mixed(found[1])
        else None
    )


def discord(found: Found) -> Span | None:
    """Three parts, the first of them an id in base64."""
    start = found.start()
    first = re.search(
        rb"[MNO][A-Za-z0-9_-]{22,27}$", found.string[max(0, start - 28) : start]
    )
    if first is None or not is_mixed(found.group()):
        return None
    return start - len(first.group()), found.end()


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
    word = BEFORE.search(found.string[start : found.start()])
    if word is None or not _is_said(word[1], strong=False):
        return None
    return start + word.start(1), start + word.start(1) + len(word[1].rstrip(b".,;:"))


def command(found: Found) -> Span | None:
    """The password that an option of a known command carries."""
    at = found.lastindex or 0
    value = found[at]
    if not at or is_placeholder(value) or is_reference(value):
        return None
    line = found.string[found.string.rfind(b"\n", 0, found.start()) + 1 : found.start()]
    if at == 5 and not (
        is_password_like(value)
        and re.search(
            rb"mysql|mariadb|login|sshpass|redis-cli|psql|7z|zip|unrar|smb", line
        )
    ):
        return None
    return None if value.isdigit() or value[:1] == b"/" else found.span(at)


CHECKS: dict[str, Callable[[Found], Span | None]] = {
    "pem": pem, "header": header, "bearer": bearer, "basic": basic, "mixed": mixed,
    "not_placeholder": plain, "url_password": url_password, "cut_password": cut_password,
    "leading_pair": leading_pair, "telegram": telegram, "discord": discord, "azure": azure,
    "option": option, "said_before": said_before, "command": command,
}  # fmt: skip
__all__ = ["CHECKS", "EDGES", "find_spoken"]

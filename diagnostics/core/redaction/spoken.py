"""Secrets told in sentences, and ones that commands and addresses show."""

import re
from collections.abc import Callable, Iterator

from diagnostics.core.redaction.checks import (
    EDGES,
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
from diagnostics.core.secret_names import Strength, name_strength

Span = tuple[int, int]
Found = re.Match[bytes]

VERB = (
    rb"(?:is|was|are|equals|becomes|to|be|now|being|with|typed|used|use|using|entered|entering|as"
    rb"|remains|got|gave|ist|lautet|est|es|e|ar|er|jest|je|called|reads|says|namely|sent|set|=|:|-|=?-?>|of)"
)
AFTER = re.compile(
    rb"[a-z]{0,2}[\"'`)*]{0,3},?(?:[ \t]+\(?[a-z0-9_.'?-]{1,24}\)?,?){0,6}?(?:[ \t]+"
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
# user anna pass ..., credentials: anna / ...
SIGNED_IN = re.compile(
    rb"[ \t:=]{1,3}[\w.@+-]{1,40},?[ \t]+pass(?:word)?[ \t:=]{1,3}([^\s\"'`<>()]{5,200})",
    re.IGNORECASE,
)
NAME_AND_PASSWORD = re.compile(
    rb"[ \t:=]{1,3}(?:are[ \t]+)?[\w.@+-]{1,40}[ \t]?[/:|][ \t]?([^\s\"'`<>()]{5,200})"
)
KNOWN_AS_SECRET = (
    b"passw", b"passphrase", b"passcode", b"pwd", b"kennwort", b"contrasena", b"senha",
    b"wachtwoord", b"losenord", b"passord", b"parola", b"haslo", b"heslo", b"sifre",
    b"adgangskode", b"napo", b"creds", b"credential",
)  # fmt: skip


WORD = re.compile(rb"[a-z]+", re.IGNORECASE)
NAMED_NUMBER = re.compile(rb"[a-zA-Z]{4,}[-_]?[0-9]{1,4}")


def find_spoken(body: bytes, at: int) -> Span | None:
    """Give the span of the word that a sentence says is the secret named at `at`."""
    at += body[at : at + 1] == b"_"
    if at and body[at - 1 : at].isalpha() and not _is_hump(body, at):
        return None
    word = WORD.match(body, at)
    if word is None:
        return None
    named = word.group().lower()
    if named in (b"user", b"username", b"login"):
        signed = SIGNED_IN.match(body, word.end())
        is_told = signed is not None and _is_said(signed[1], strong=True)
        return _trimmed(body, signed.span(1)) if signed and is_told else None
    if named in (b"creds", b"credentials"):
        pair = NAME_AND_PASSWORD.match(body, word.end())
        if pair and _is_said(pair[1], strong=True):
            return _trimmed(body, pair.span(1))
    strong = named.startswith(KNOWN_AS_SECRET) or _is_pass(body, at, named)
    if not strong and not _is_secret_word(body, at, named):
        return None
    direct = DIRECT.match(body, word.end())
    if direct and _is_said(direct[1], strong):
        return _trimmed(body, direct.span(1))
    said = AFTER.match(body, word.end(), word.end() + 400)
    if said and (_is_said(said[2], strong) or _is_quoted_word(said, strong)):
        return _trimmed(body, said.span(2))
    return None


def _is_pass(body: bytes, at: int, named: bytes) -> bool:
    """Tell `db_pass`, `mot de passe` and `user anna pass` from a pass in the hills."""
    if named == b"passe":
        return body[max(0, at - 3) : at].lower() == b"de "
    return named == b"pass" and body[at - 1 : at] == b"_"


def _is_secret_word(body: bytes, at: int, named: bytes) -> bool:
    if not named.startswith((b"key", b"code")):
        return True
    before = body[max(0, at - 16) : at].lower().rstrip(b" -_")
    return before.endswith(
        (
            b"functions",
            b"wifi",
            b"wi-fi",
            b"wlan",
            b"network",
            b"one-time",
            b"login",
            b"recovery",
            b"backup",
            b"my",
            b"your",
            b"our",
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


# No word of a sentence changes so often between small and capital letters.
ODD_CASES = 3
ODD_LENGTH = 8


def _is_said(value: bytes, strong: bool) -> bool:
    inner = strip(value)
    # Of words in other scripts, a fold leaves question marks.
    is_foreign = b"?" in value and not has_digit(value)
    if is_foreign or not is_password_like(inner):
        return False
    if len(inner) >= 20 and is_random(inner):
        return True
    if NUMBERED.fullmatch(inner):
        if case_changes(inner) >= ODD_CASES and len(inner) >= ODD_LENGTH:
            return True
        is_name = inner.islower() and not inner.isalnum()
        named = NAMED_NUMBER.fullmatch(inner)
        return strong and named is not None and not is_name
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


def pem(found: Found) -> Iterator[Span]:
    """Give what is to END, or as far as there is only the body of a key, line by line."""
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

PEM_END = re.compile(
    rb"-{4}[ -]END[A-Z0-9 ]{0,30}(?:PRIVATE|SECRET) KEY[A-Z ]{0,10}-{0,5}"
)
# Lines may have something before them, as in a log or a quoted mail.
PEM_BODY = re.compile(
    rb"(?:(?<=\n)[^\nA-Za-z+/=][^\n]{0,47}?(?=[ \t>|:][A-Za-z0-9+/=]{20,}[\s\\]|[ \t]-----END)"
    rb"|[\s\\\"'+,;]|[rn]\b|<br ?/?>"
    rb"|(?:Version|Comment|Proc-Type|DEK-Info|Hash|Charset):[^\n]{0,100}"
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
    start = max(0, found.start() - 36)
    digits = HEX_KEY.search(found.string[start : found.start()])
    return (start + digits.start(), found.end()) if digits else None


def random(found: Found) -> Span | None:
    """Ask for what no words make."""
    return found.span(1) if is_random(found[1]) else None


NEAR = 2_048
HEX_KEY = re.compile(rb"(?:[0-9a-f]{36}|(?<![0-9a-f])[0-9a-f]{32})$")


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
    left = found.string[start : found.start()].rstrip(b" ,;-")
    left = left[: max(len(left.rstrip(WORD_ENDS)), len(left) - 3)]
    begun = 1 + max(left.rfind(sign) for sign in WORD_ENDS[:-1])
    word = left[begun:]
    if len(word) < SHORTEST_WORD or not _is_said(word, strong=False):
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
        and re.search(
            rb"mysql|mariadb|login|sshpass|redis-cli|psql|7z|zip|unrar|smb", line
        )
    ):
        return None
    return None if value.isdigit() or value[:1] == b"/" else found.span(at)


CHECKS: dict[str, Callable[[Found], Span | None]] = {
    "header": header, "bearer": bearer, "basic": basic, "mixed": mixed,
    "not_placeholder": plain, "url_password": url_password, "cut_password": cut_password,
    "leading_pair": leading_pair, "telegram": telegram, "discord": discord, "azure": azure,
    "jwk": jwk, "rsa_xml": rsa_xml, "before_hex": before_hex, "random": random,
    "option": option, "said_before": said_before, "command": command,
}  # fmt: skip
EACH: dict[str, Callable[[Found], Iterator[Span]]] = {"cookies": cookies, "pem": pem}
__all__ = ["CHECKS", "EACH", "EDGES", "find_spoken"]

"""Secrets in sentences."""

import re

from failsoft.redaction.checks import (
    case_changes,
    has_digit,
    is_mixed,
    is_password_like,
    is_placeholder,
    is_random,
    is_reference,
    is_worded,
    strip,
)
from failsoft.redaction.re2_search import Span

Match = re.Match[bytes]

VERB = (
    rb"(?:is|was|are|equals|becomes|to|be|now|being|with|typed|used|use|using|entered|entering|as"
    rb"|remains|got|gave|ist|lautet|est|es|e|ar|er|jest|je|called|reads|says|namely|sent|set|este|adalah|it's|=|:|-|=?-?>|of)"
)
AFTER = re.compile(
    rb"[a-z]{0,2}[\"'`)*]{0,3},?(?:[ \t]+\(?[a-z0-9_.'?-]{1,24}\)?[,;]?){0,6}?(?:[ \t]+"
    + VERB
    + rb"|:)[ \t:]{1,4}(?:(?:now|currently|still|just|simply|set to|this|actually|always)"
    rb"[ \t:]{1,3})?"
    rb"([\"'`(*]{0,3})([^\s\"'`<>]{4,200})",
    re.IGNORECASE,
)
DIRECT = re.compile(rb"'?s?,?[ \t]+[\"'`(*]{0,3}([^\s\"'`<>()]{5,200})", re.IGNORECASE)
NUMBERED = re.compile(
    rb"[A-Za-z]?(?:[a-z]{1,6}|[A-Z]{1,6})[0-9]{1,4}|[A-Za-z]?[a-z]{7,}[0-9]{1,2}|[A-Za-z]+[-_][0-9]{1,4}|[0-9]+[-/:.][0-9.:/-]+|.*\.(?:com|org|net|io|dev|py|js|txt|json|ya?ml)|/.*"
)
# user anna pass ..., credentials: anna / ...
# login with anna / ...
ENTERED = re.compile(
    rb"[ \t]+(?:with|as|using)[ \t]+[\w.@+-]{1,40}[ \t]?[/:|][ \t]?([^\s\"'`<>()]{5,200})",
    re.IGNORECASE,
)
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
    b"adgangskode", b"napo", b"creds", b"credential", b"zugangsdaten", b"sandi",
)  # fmt: skip
# Words before "key" or "code" that make it a secret.
KEEPERS = (
    b"functions", b"unseal", b"set the", b"shared", b"wifi", b"wi-fi", b"wlan", b"network",
    b"one-time", b"login", b"recovery", b"backup", b"my", b"your", b"our", b"api", b"access",
    b"secret", b"private", b"license", b"pin", b"security", b"verification", b"encryption",
    b"account", b"master",
)  # fmt: skip
PAIRS = (b"creds", b"credentials", b"zugangsdaten")
# In other languages, "key" means a secret only before "api".
API_AFTER = re.compile(rb"[ \t-]api\b", re.IGNORECASE)
WORD = re.compile(rb"[a-z]+", re.IGNORECASE)
NAMED_NUMBER = re.compile(rb"[a-zA-Z]{4,}[-_]?[0-9]{1,4}")


def find_in_prose(body: bytes, at: int) -> Span | None:
    """Return the span of the word that a sentence states as the secret named at `at`."""
    at += body[at : at + 1] == b"_"
    if at and body[at - 1 : at].isalpha() and not _is_hump(body, at):
        return None
    word = WORD.match(body, at)
    if word is None:
        return None
    keyword = word.group().lower()
    if keyword in (b"user", b"username", b"login"):
        end = word.end()
        sign_in = SIGNED_IN.match(body, end) or ENTERED.match(body, end)
        is_secret = sign_in is not None and is_stated_secret(sign_in[1], strong=True)
        return trimmed(body, sign_in.span(1)) if sign_in and is_secret else None
    if keyword in PAIRS:
        pair = NAME_AND_PASSWORD.match(body, word.end())
        if pair and is_stated_secret(pair[1], strong=True):
            return trimmed(body, pair.span(1))
    if keyword in (b"cle", b"chiave", b"clave", b"chave", b"klucz", b"nyckel"):
        api = API_AFTER.match(body, word.end())
        word = api or word
    strong = keyword.startswith(KNOWN_AS_SECRET) or _is_pass(body, at, keyword)
    strong = strong or keyword == b"pw"
    if not strong and not _is_secret_word(body, at, keyword):
        return None
    direct = DIRECT.match(body, word.end())
    if direct and is_stated_secret(direct[1], strong):
        return trimmed(body, direct.span(1))
    statement = AFTER.match(body, word.end(), word.end() + 400)
    if statement and (is_stated_secret(statement[2], strong) or _is_quoted_word(statement, strong)):
        return trimmed(body, statement.span(2))
    return None


def _is_pass(body: bytes, at: int, keyword: bytes) -> bool:
    """Whether "pass" means a password, as in `db_pass` and `mot de passe`."""
    if keyword == b"passe":
        return body[max(0, at - 3) : at].lower() == b"de "
    return keyword == b"pass" and body[at - 1 : at] == b"_"


def _is_secret_word(body: bytes, at: int, keyword: bytes) -> bool:
    if not keyword.startswith((b"key", b"code")):
        return True
    before = body[max(0, at - 16) : at].lower().rstrip(b" -_")
    return before.endswith(KEEPERS)


def _is_hump(body: bytes, at: int) -> bool:
    return body[at : at + 1].isupper() and body[at - 1 : at].islower()


# Ordinary words change between lower and upper case less often than this.
ODD_CASES = 3
ODD_LENGTH = 8


def is_stated_secret(value: bytes, strong: bool) -> bool:
    inner = strip(value)
    # Words of other scripts are folded to question marks.
    is_foreign = b"?" in value and not has_digit(value)
    if is_foreign or ATTRIBUTE.fullmatch(inner) or not is_password_like(inner):
        return False
    if len(inner) >= 20 and is_random(inner):
        return True
    if NUMBERED.fullmatch(inner):
        if len(inner) >= ODD_LENGTH and _is_odd(inner):
            return True
        is_name = inner.islower() and not inner.isalnum()
        numbered = NAMED_NUMBER.fullmatch(inner)
        return strong and numbered is not None and not is_name
    return strong or is_mixed(inner) or len(inner) >= 8


def _is_odd(value: bytes) -> bool:
    letters = ALPHA.match(value)
    return case_changes(value) >= ODD_CASES or not (letters is None or is_worded(letters.group()))


ALPHA = re.compile(rb"[A-Za-z]{4,}")
# The name of an attribute and its equals sign.
ATTRIBUTE = re.compile(rb"[A-Za-z:_-]+=")


def _is_quoted_word(statement: Match, strong: bool) -> bool:
    inner = strip(statement[2])
    return (
        strong
        and bool(statement[1])
        and len(inner) >= 6
        and not (is_placeholder(inner) or is_reference(inner))
    )


def trimmed(body: bytes, span: Span) -> Span:
    value = body[span[0] : span[1]]
    return span[0], span[0] + len(value.rstrip(b".,;:)]}*?") or value)

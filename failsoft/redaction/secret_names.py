"""Names whose values are secrets, and names of fields whose values are names."""

import re
from enum import IntEnum
from functools import lru_cache

HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
SEPARATORS = re.compile(r"[^a-z0-9]+")
SUFFIX = (
    r"[0-9]*(?:_(?:value|base|new|old|confirm|confirmation|plain|text|raw|string|[0-9]+"
    r"|prod|production|staging|dev|test|live|default|b64|base64|current|previous|primary"
    r"|secondary|again|repeat|key|hint))*$"
)
CERTAIN = re.compile(
    r"(?:^|_)(?:password|passwords|passwd|passphrase|passcode|pwd|pswd|secrets?"
    r"|secret_id|[a-z]{0,16}(?:password|passwd|pwd)|(?:[a-z]+_|db|user|smtp|mysql|store|key|trust|bind|root|require)pass"
    r"|api_?keys?|apikey|(?:access|private|signing|encryption|master|account|secret"
    r"|service|license|ssh|storage|shared|subscription|functions|consumer|deploy|hmac|jwt"
    r"|webhook|cipher|aes|rsa|pgp|gpg|wpa|wep|auth|client|app|application|admin|root"
    r"|session|cookie|crypto|write|ingest|server|bot|integration|instrumentation|openai"
    r"|anthropic|stripe|azure|gemini|mistral)_?keys?"
    r"|otp|totp|cvv|cvc|cvv2|pin|pin_code|credentials?|[a-z]{0,8}sess_?id|sessionid|code_verifier|dsn|connection_?string"
    r"|webhook_?url|mnemonic|seed_phrase|recovery_phrase|unseal_key|(?:recovery|backup|unlock|activation)_codes?|zugangsdaten|kata_sandi|mat_khau|psk|pepper|kennwort|passwort"
    r"|senha|contrasena|wachtwoord|parola|haslo|heslo|mot_de_passe|zugangscode|napo|sifre|losenord|passord"
    r"|adgangskode|salasana|jelszo"
    r"|authorization|cookies?|proxy_authorization|x_api_key"
    r"|(?:auth|access|refresh|id|session|csrf|xsrf|bot|bearer|api|security|vault|private"
    r"|personal|secret|user|deploy|github|gitlab|slack|oauth|jwt|hf)_?tokens?|authtoken"
    r"|accesstoken)" + SUFFIX + "|^pw$"
)
LIKELY = re.compile(
    r"(?:^|_)(?:tokens?|pass|jwt|auth|session(?:_?id)?|sess|sid|sig|signature|csrf|xsrf|salt"
    r"|seed|pat|pw|bearer|[a-z]{2,20}token|[a-z]{2,20}secret)" + SUFFIX
)
POSSIBLE = re.compile(r"(?:^|_)(?:[a-z0-9]{0,20}keys?)" + SUFFIX)
# Keys of tables, caches and messages, and tokens in counts and names.
NOT_SECRET = re.compile(
    r"(?:^|_)(?:public|primary|foreign|sort|partition|cache|idempotency|object|dedup|hash"
    r"|issue|translation|message|routing|group|unique|natural|lookup|index|row|record"
    r"|max|min|total|prompt|completion|input|output|num|count|next|page|continuation"
    r"|eos|bos|pad|stop|special)_?(?:keys?|tokens?)"
)
# Names of series and their dimensions, which are not secret by prefix or suffix alone.
NAME_FIELDS = frozenset(
    {"correlation_id", "environment", "model", "node", "prompt_version", "provider", "region"}
    | {"release", "schema", "schema_version", "served_model", "source", "system_fingerprint"}
    | {"tool", "upstream"}
)
SECRET_MARK = "[REDACTED:secret]"  # noqa: S105 - the marker that replaces a secret


class Strength(IntEnum):
    """The certainty that the value of a name is a secret."""

    NONE = 0
    POSSIBLE = 1
    LIKELY = 2
    CERTAIN = 3


@lru_cache(maxsize=4096)
def name_strength(name: str) -> Strength:
    """Return the strength of a name: `DB_PASSWORD` certain, `token` likely, `key` possible."""
    spaced = HUMP.sub("_", name[-200:]).lower()
    parts = SEPARATORS.sub("_", spaced).strip("_")
    if NOT_SECRET.search(parts):
        return Strength.NONE
    if CERTAIN.search(parts):
        return Strength.CERTAIN
    if LIKELY.search(parts):
        return Strength.LIKELY
    return Strength.POSSIBLE if POSSIBLE.search(parts) else Strength.NONE


SECRET_TOKENS = re.compile(r"(?:^|_)(?:tokens?|pass|jwt|bearer)" + SUFFIX)


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether the value under this key is a secret: `apiKey`, `DB_PASSWORD`, ..."""
    strength = name_strength(name)
    if strength == Strength.LIKELY:
        spaced = HUMP.sub("_", name[-200:]).lower()
        return SECRET_TOKENS.search(SEPARATORS.sub("_", spaced).strip("_")) is not None
    return strength == Strength.CERTAIN

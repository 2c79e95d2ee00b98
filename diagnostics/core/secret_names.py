"""Names whose values are secrets, whatever they look like."""

import re

HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
SEPARATORS = re.compile(r"[^a-z0-9]+")
SECRET = re.compile(
    r"(?:^|_)(?:password|passwd|passphrase|passcode|pwd|pass|secrets?|token|otp"
    r"|api_?keys?|apikey|(?:access|private|signing|encryption|master|account|secret"
    r"|service|license|ssh)_?keys?|(?:auth|access|refresh|id|session|csrf|bot|bearer)"
    r"_?tokens?|credentials?|authorization|cookies?|connection_?string|dsn"
    r"|sessionid|webhook_?url)[0-9]*(?:_(?:value|key|base|new|old|id|[0-9]+))?$"
)


def is_secret_name(name: str) -> bool:
    """Say whether the value under this key is a secret: `apiKey`, `DB_PASSWORD`, ..."""
    spaced = HUMP.sub("_", name[-200:]).lower()
    return SECRET.search(SEPARATORS.sub("_", spaced).strip("_")) is not None

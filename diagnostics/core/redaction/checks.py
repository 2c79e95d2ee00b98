"""Second opinions on a match: what a pattern alone cannot tell."""

import re
from collections.abc import Callable
from pathlib import Path

PLACEHOLDERS_FILE = Path(__file__).with_name("placeholders.txt")
PLACEHOLDERS = frozenset(PLACEHOLDERS_FILE.read_text(encoding="utf-8").split())
CARD_LENGTHS = {
    "3": (14, 15, 16),
    "4": (13, 16, 19),
    "5": (16,),
    "2": (16,),
    "6": (16,),
}
DIGITS = b"0123456789"
# Where a secret is kept, or the code that fetches it: not the secret.
REFERENCE = re.compile(
    rb"env:|file:|\$[({A-Z_]|%\(|\{\{|(?:os|process|self|config|settings|env|args)\.[a-z]"
    rb"|[a-z_][a-z_.]*\(",
    re.IGNORECASE,
)


def is_not_placeholder(value: bytes) -> bool:
    """Refuse words, type names and references to where a secret is kept."""
    text = value.decode("ascii").strip("\"'`.,;:!?()[]{}<>*").lower()
    if text in PLACEHOLDERS or len(set(text)) < 2:
        return False
    return REFERENCE.match(value) is None


def is_mixed(value: bytes) -> bool:
    """Ask for a digit beside letters, as made-up words lack one."""
    has_digit = any(byte in DIGITS for byte in value)
    return has_digit and any(chr(byte).isalpha() for byte in value)


def is_spoken_secret(value: bytes) -> bool:
    """Ask a word of a sentence for a digit or a sign inside before it is a secret."""
    inner = value.strip(b".,;:!?\"'`()")
    odd = any(not chr(byte).isalpha() for byte in inner)
    return odd and len(inner) >= 4 and is_not_placeholder(inner)


def is_bearer(value: bytes) -> bool:
    """Ask for a digit, or for a length no word has."""
    return any(byte in DIGITS for byte in value) or len(value) >= 20


def is_card(value: bytes) -> bool:
    """Check length by issuer and the Luhn sum."""
    digits = [byte - 48 for byte in value if byte in DIGITS]
    if len(digits) not in CARD_LENGTHS.get(str(digits[0]), ()):
        return False
    doubled = (sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


CHECKS: dict[str, Callable[[bytes], bool]] = {
    "not_placeholder": is_not_placeholder,
    "mixed": is_mixed,
    "spoken": is_spoken_secret,
    "bearer": is_bearer,
    "card": is_card,
}

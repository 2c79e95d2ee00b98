"""Card numbers: by issuer, length and sum."""

import re
from collections.abc import Iterator

NUMBER = re.compile(
    rb"(?:(?<![0-9A-Za-z])|(?<=%B))(?<![0-9A-Za-z][.+_-])"
    rb"[2-6](?:(?: - |[ .-])?[0-9]){12,18}(?![0-9A-Fa-f])"
)
GAP = re.compile(rb"[ .-]")
# One digit before a point is a fraction.
LEAST_GROUP = 2
DIGITS = b"0123456789"
SEPARATORS = b" .-"
# First digits and the lengths that go with them.
ISSUERS = (
    (b"4", (13, 16, 19)), (b"5", (16,)), (b"34", (15,)), (b"37", (15,)), (b"2", (16,)),
    (b"36", (14,)), (b"38", (14, 16)), (b"39", (14, 16)), (b"30", (14, 16)), (b"35", (16,)),
    (b"6", (16, 17, 18, 19)),
)  # fmt: skip


def find_cards(body: bytes) -> Iterator[tuple[int, int]]:
    """Yield the spans of card numbers, grouped or not."""
    for found in NUMBER.finditer(body):
        if is_card(found.group()):
            yield found.span()


def is_card(value: bytes) -> bool:
    """Check length by issuer, one kind of separator and the Luhn sum."""
    digits = value.translate(None, SEPARATORS)
    lengths = next((few for head, few in ISSUERS if digits.startswith(head)), ())
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

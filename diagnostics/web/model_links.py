"""Addresses of models: a provider and a model may hold any characters, or be unknown."""

import re

from django.urls import register_converter, reverse

UNKNOWN = "-"
SPECIAL = re.compile(r"[^\w.:@+-]")
ESCAPED = re.compile(r"(?:~[0-9A-F]{2})+")


def write_segment(name: str | None) -> str:
    """Write a name as a segment; null is `-`, an empty name `~`."""
    if name is None:
        return UNKNOWN
    if name in {"", UNKNOWN, ".", ".."}:
        return _escape(name) or "~"
    return SPECIAL.sub(lambda match: _escape(match[0]), name)


def read_segment(segment: str) -> str | None:
    """Read what `write_segment` wrote; raises ValueError for anything else."""
    if segment == UNKNOWN:
        return None
    if segment == "~":
        return ""
    name = ESCAPED.sub(
        lambda match: bytes.fromhex(match[0].replace("~", "")).decode(errors="replace"), segment
    )
    if write_segment(name) != segment:
        raise ValueError("not a name as a segment")
    return name


def _escape(text: str) -> str:
    return "".join(f"~{byte:02X}" for byte in text.encode())


class NameConverter:
    """A name as one segment of an address; an unknown one is `-`."""

    regex = "[^/]+"

    def to_python(self, value: str) -> str | None:
        """Read a segment; what no page writes is taken as it was typed."""
        try:
            name = read_segment(value)
        except ValueError:
            name = value
        if name and "\0" in name:
            raise ValueError("no row's name has a NUL")
        return name

    def to_url(self, value: str | None) -> str:
        return write_segment(value)


register_converter(NameConverter, "name")


def model_url(provider: str | None, model: str | None, query: str = "") -> str:
    """Return the address of a model's page, with a query string if there is one."""
    address = reverse("model", args=[provider, model])
    return f"{address}?{query}" if query else address

"""Every address of the product, found by walking the resolver: new ones are covered too."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from django.urls import URLResolver, get_resolver
from django.urls.resolvers import RoutePattern

METHODS = ("get", "post", "put", "patch", "delete", "head", "options")


@dataclass(frozen=True, slots=True)
class Address:
    """A pattern of the resolver: how it is written, its parameters, view and name."""

    route: str
    names: tuple[str, ...]
    view: Any
    name: str

    def path(self, **values: str) -> str:
        """Write the path with values for its parameters."""
        written = self.route
        for name in self.names:
            value = quote(values[name], safe="")
            written = re.sub(rf"<(?:\w+:)?{name}>", lambda _, v=value: v, written)  # type: ignore[misc]
        return "/" + written


def all_addresses(resolver: URLResolver | None = None, before: str = "") -> Iterator[Address]:
    """Walk the patterns; those that are no plain routes are passed over."""
    for entry in (resolver or get_resolver()).url_patterns:
        pattern = entry.pattern
        if isinstance(entry, URLResolver):
            yield from all_addresses(entry, before + str(pattern))
        elif isinstance(pattern, RoutePattern):
            yield Address(
                before + str(pattern), tuple(pattern.converters), entry.callback, entry.name or ""
            )

"""Addresses of models: a provider and a model may hold any characters, or be unknown."""

from django.urls import register_converter, reverse

from diagnostics.core.path_segments import read_segment, write_segment


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
        """Write a segment."""
        return write_segment(value)


register_converter(NameConverter, "name")


def model_url(provider: str | None, model: str | None, query: str = "") -> str:
    """Give the address of a model's page, with a query string if there is one."""
    address = reverse("model", args=[provider, model])
    return f"{address}?{query}" if query else address

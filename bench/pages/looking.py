"""One page as a browser asks for it: when the first byte comes, and what it holds."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from html.parser import HTMLParser
from http.client import HTTPConnection
from math import ceil

SECONDS = 60
# What a page shows whose verdict is still to come.
PENDING = b'aria-busy="true"'


@dataclass(frozen=True, slots=True)
class Look:
    """What one page cost: milliseconds to the first byte, bytes, nodes, CSS and scripts."""

    first_ms: float
    whole_ms: float
    """Until the first view was whole: it may load what has to be judged after its frame."""
    p50_ms: float
    p95_ms: float
    size: int
    nodes: int
    requests: int
    status: int


class _Counting(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.nodes = 0
        self.loaded = 1

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.nodes += 1
        given = dict(attrs)
        is_sheet = tag == "link" and given.get("rel") == "stylesheet"
        self.loaded += is_sheet or (tag == "script" and "src" in given)


def look_at(port: int, path: str, headers: Mapping[str, str], rounds: int) -> Look:
    """Ask for a page once to warm it and then `rounds` times over one connection."""
    connection = HTTPConnection("127.0.0.1", port, timeout=SECONDS)
    taken: list[float] = []
    whole_ms = 0.0
    for number in range(rounds + 1):
        began = time.perf_counter()
        connection.request("GET", path, headers=dict(headers))
        answer = connection.getresponse()
        taken.append(1000 * (time.perf_counter() - began))
        body, status = answer.read(), answer.status
        if PENDING in body:
            connection.request("GET", path, headers={**headers, "HX-Request": "true"})
            connection.getresponse().read()
        if not number:
            whole_ms = 1000 * (time.perf_counter() - began)
    connection.close()
    first_ms = taken.pop(0)
    counting = _Counting()
    counting.feed(body.decode("utf-8", "replace"))
    taken.sort()
    return Look(
        first_ms,
        whole_ms,
        taken[len(taken) // 2],
        taken[ceil(0.95 * len(taken)) - 1],
        len(body),
        counting.nodes,
        counting.loaded,
        status,
    )

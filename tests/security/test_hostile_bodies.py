"""Bodies that mean harm, sent to a real web server: refused, and memory stays (S5 to S7)."""

import gzip
import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from diagnostics.store.models import Event, EventIdentity
from tests.diagnostics.builders import wire_event
from tests.diagnostics.ingest.schemas.bombs import Bomb, all_bombs
from tests.diagnostics.otlp_bodies import as_json, span, traces
from tests.security.hostile import JSON_TYPE, Hostile, all_hostile
from tests.security.web import Web, running_web

pytestmark = pytest.mark.django_db(transaction=True)
URL = "/api/v1/events"
MORE_MEGABYTES = 64
# Of the processor: the machine may be busy with other things.
MOST_SECONDS = 2.0
CLIENTS = 50


@pytest.fixture
def web() -> Iterator[Web]:
    with running_web() as running:
        yield running


@pytest.fixture
def key() -> str:
    project = Project.objects.create(slug="p", name="P")
    return issue_key(project, "k", [Scope.INGEST]).text


def headers_of(key: str, body: Hostile) -> dict[str, str]:
    told = {"Authorization": f"Bearer {key}", "Content-Type": body.kind, **body.headers}
    return told | ({"Content-Encoding": body.coding} if body.coding else {})


def is_refused(code: int, answer: bytes) -> bool:
    """Say whether nothing was stored: 4xx, or 207 without a good item."""
    if code == 207:
        return int(json.loads(answer)["accepted"]) == 0
    return 400 <= code < 500


@pytest.mark.slow
def test_hostile_bodies_are_refused_and_cost_no_memory(web: Web, key: str) -> None:
    good = Hostile("good", lambda: big_batch(200))
    for _ in range(4):
        assert web.ask("POST", URL, good.make(), headers_of(key, good))[0] == 200
    before, stored = web.peak_megabytes(), Event.objects.count()
    wrong, slow = {}, {}
    for body in all_hostile():
        sent, begun = body.make(), web.cpu_seconds()
        code, answer = web.ask("POST", URL, sent, headers_of(key, body))
        if (taken := web.cpu_seconds() - begun) > MOST_SECONDS:
            slow[body.name] = taken
        # The server may close the door on a body that is too large.
        if not is_refused(code, answer) and code != 0:
            wrong[body.name] = (code, answer[:200])
    assert (wrong, slow) == ({}, {})
    assert Event.objects.count() == stored
    assert web.peak_megabytes() - before <= MORE_MEGABYTES
    assert web.ask("GET", "/healthz", None, {})[0] == 200


def posted_answers(bombs: list[Bomb]) -> bytes:
    return json.dumps([bomb.answer for bomb in bombs]).encode()


def reported_spans(bombs: list[Bomb]) -> bytes:
    spans = [span(bomb.attributes, span_id=f"{n:016x}") for n, bomb in enumerate(bombs, 1)]
    return as_json(traces(*spans))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "write"),
    [(URL, posted_answers), ("/v1/traces", reported_spans)],
    ids=["posted", "in spans"],
)
def test_answers_and_schemas_that_are_dear_to_check_are_stored_in_time(
    web: Web, key: str, path: str, write: Callable[[list[Bomb]], bytes]
) -> None:
    """Each by itself, and many in one body."""
    told = {"Authorization": f"Bearer {key}", "Content-Type": JSON_TYPE}
    bombs = list(all_bombs())
    small = [bomb for bomb in bombs if len(bomb.text) < 200_000]
    bodies = {bomb.name: write([bomb]) for bomb in bombs} | {"many": write(small)}
    wrong, slow = {}, {}
    for name, body in bodies.items():
        begun = web.cpu_seconds()
        if (code := web.ask("POST", path, body, told)[0]) != 200:
            wrong[name] = code
        if (taken := web.cpu_seconds() - begun) > MOST_SECONDS:
            slow[name] = taken
    assert (wrong, slow) == ({}, {})


def big_batch(count: int) -> bytes:
    """Write events of 2 KB."""
    filler = " ".join(f"word{n}" for n in range(260))
    return json.dumps([wire_event(raw_output_preview=filler) for _ in range(count)]).encode()


@pytest.mark.slow
def test_a_thousand_events_of_two_kilobytes_are_taken_plain_and_packed(web: Web, key: str) -> None:
    told = {"Authorization": f"Bearer {key}", "Content-Type": JSON_TYPE}
    body = big_batch(1000)
    assert len(body) > 2_000_000
    code, answer = web.ask("POST", URL, body, told)
    assert (code, json.loads(answer)["accepted"]) == (200, 1000)
    packed = gzip.compress(big_batch(1000))
    code, answer = web.ask("POST", URL, packed, told | {"Content-Encoding": "gzip"})
    assert (code, json.loads(answer)["accepted"]) == (200, 1000)
    assert Event.objects.count() == 2000


@pytest.mark.slow
def test_fifty_identical_posts_at_once_store_one_row(web: Web, key: str) -> None:
    body = json.dumps([wire_event()]).encode()
    told = {"Authorization": f"Bearer {key}", "Content-Type": JSON_TYPE}
    with ThreadPoolExecutor(CLIENTS) as pool:
        jobs = [pool.submit(web.ask, "POST", URL, body, told) for _ in range(CLIENTS)]
        answers = [job.result() for job in jobs]
    assert {code for code, _ in answers} == {200}
    results = [json.loads(body) for _, body in answers]
    assert sum(result["accepted"] for result in results) == 1
    assert sum(result["duplicates"] for result in results) == CLIENTS - 1
    assert (Event.objects.count(), EventIdentity.objects.count()) == (1, 1)


@pytest.mark.slow
def test_bodies_in_chunks_are_read_or_refused(web: Web, key: str) -> None:
    head = (
        f"POST {URL} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: {JSON_TYPE}\r\nTransfer-Encoding: chunked\r\n"
        "Connection: close\r\n\r\n"
    ).encode()
    body = json.dumps([wire_event()]).encode()
    whole = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    answer = web.send_raw(head + whole, 10)
    assert answer.split(b" ")[1] in (b"200", b"411")
    for chunks in (b"zz\r\nxx\r\n0\r\n\r\n", b"ffffffffffffffffff\r\n", b"-1\r\n\r\n"):
        answer = web.send_raw(head + chunks, 5)
        assert answer == b"" or answer.split(b" ")[1][:1] == b"4"
    assert web.ask("GET", "/healthz", None, {})[0] == 200


@pytest.mark.slow
def test_slow_senders_do_not_keep_others_from_the_door(web: Web, key: str) -> None:
    told = {"Authorization": f"Bearer {key}", "Content-Type": JSON_TYPE}
    slow = (
        f"POST {URL} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
        f"Content-Type: {JSON_TYPE}\r\nContent-Length: 1000\r\n\r\n["
    ).encode()
    with ThreadPoolExecutor(3) as pool:
        jobs = [pool.submit(web.send_raw, slow, 4) for _ in range(3)]
        body = json.dumps([wire_event()]).encode()
        assert web.ask("POST", URL, body, told)[0] == 200
        assert all(job.result()[9:10] in (b"", b"4") for job in jobs)
    assert Event.objects.count() == 1

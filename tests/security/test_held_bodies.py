"""Bodies that are held back keep nobody else from sending or signing in (S5 to S7)."""

import json
import socket
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from itertools import repeat
from threading import Event

import pytest

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.authentication import KEEP_SECONDS
from diagnostics.accounts.models import ApiKey, Project
from diagnostics.accounts.projects import issue_key
from diagnostics.store.models import Event as StoredEvent
from tests.diagnostics.builders import wire_event
from tests.diagnostics.ingest.schemas.bombs import Bomb, all_bombs
from tests.security.web import Web, running_web

pytestmark = pytest.mark.django_db(transaction=True)
HELD_BYTES = 4 << 20
# Ever smaller bodies fill what the refused ones leave.
HELD = [HELD_BYTES] * 17 + [HELD_BYTES >> 2] * 9 + [HELD_BYTES >> 4] * 9
POSTS = 22
# A post needs more than what they leave.
PADDING = 3 << 20
# A post waits less than any deadline of a body, even on a busy machine.
LONGEST_WAIT_SECONDS = 9.0


@pytest.fixture(scope="module")
def web(django_db_setup: None) -> Iterator[Web]:
    with running_web() as running:
        yield running


def key_of(slug: str, *scopes: Scope) -> str:
    project, _ = Project.objects.get_or_create(slug=slug, defaults={"name": slug})
    return issue_key(project, "k", list(scopes or [Scope.INGEST])).text


def head(
    path: str = "/api/v1/events",
    key: str = "",
    length: str = f"Content-Length: {HELD_BYTES + 1}",
    version: str = "1.1",
) -> bytes:
    """Return the head of a post, without a key for an empty one."""
    lines = [f"POST {path} HTTP/{version}", "Host: 127.0.0.1", "Content-Type: application/json"]
    lines += [f"Authorization: Bearer {key}"] * bool(key) + [length]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


@contextmanager
def holding(web: Web, heads: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Send unfinished posts, each from an address of its own; what was answered meanwhile."""
    answers: list[bytes] = []
    with ExitStack() as links:
        opened = []
        for number, (text, size) in enumerate(zip(heads, HELD, strict=False)):
            source = (f"127.0.0.{number + 2}", 0)
            link = socket.create_connection(("127.0.0.1", web.port), 5, source)
            opened.append(links.enter_context(link))
            with suppress(OSError):
                link.sendall(text + b"x" * size)
        yield answers
        for link in opened:
            link.settimeout(0.2)
            with suppress(OSError):
                answers.append(link.recv(65_536))


def statuses(answers: list[bytes]) -> list[int]:
    return [int(answer.split(b" ")[1]) for answer in answers if answer]


def assert_open(web: Web, key: str) -> None:
    """Post for a while, ask for the sign-in form and for health."""
    codes, longest = [], 0.0
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    for _ in range(POSTS):
        post = json.dumps([wire_event()]).encode() + b" " * PADDING
        begin = time.monotonic()
        codes.append(web.ask("POST", "/api/v1/events", post, headers)[0])
        longest = max(longest, time.monotonic() - begin)
    assert codes == [200] * POSTS
    assert longest < LONGEST_WAIT_SECONDS
    assert web.ask("GET", "/accounts/login/", None, {})[0] == 200
    form = b"login=a&password=b"
    told = {"Content-Type": "application/x-www-form-urlencoded"}
    # Without a token it is refused, but it is read and answered.
    assert web.ask("POST", "/accounts/login/", form, told)[0] == 403
    assert web.ask("GET", "/healthz", None, {})[0] == 200


@pytest.mark.slow
def test_bodies_without_a_key_stop_nobody(web: Web) -> None:
    key = key_of("paying")
    with holding(web, repeat(head())) as answers:
        assert_open(web, key)
    assert set(statuses(answers)) == {401}
    assert StoredEvent.objects.count() == POSTS


@pytest.mark.slow
def test_bodies_of_one_projects_keys_stop_no_other_project(web: Web) -> None:
    key = key_of("paying")
    heads = [head(key=key_of("holding")) for _ in HELD]
    with holding(web, heads) as answers:
        assert_open(web, key)
    assert set(statuses(answers)) == {503}


@pytest.mark.slow
def test_bodies_of_one_key_stop_no_other_key_of_the_project(web: Web) -> None:
    key, holding_key = key_of("paying"), key_of("paying")
    with holding(web, repeat(head(key=holding_key))):
        assert_open(web, key)


@pytest.mark.slow
def test_bodies_of_forms_stop_neither_telemetry_nor_sign_in(web: Web) -> None:
    key = key_of("paying")
    with holding(web, repeat(head("/accounts/login/"))) as answers:
        assert_open(web, key)
    assert set(statuses(answers)) == {503}


@contextmanager
def posting_bombs(web: Web, key: str) -> Iterator[list[int]]:
    """Post four answers that are dear to check again and again; their statuses."""
    bombs = [bomb for bomb in all_bombs() if bomb.name in ("enum", "type", "items", "uniqueItems")]
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    ended, codes = Event(), list[int]()

    def post(bomb: Bomb) -> None:
        while not ended.is_set():
            body = json.dumps([bomb.answer] * 3).encode()
            codes.append(web.ask("POST", "/api/v1/events", body, headers)[0])

    with ThreadPoolExecutor(4) as pool:
        jobs = [pool.submit(post, bomb) for bomb in bombs]
        yield codes
        ended.set()
        for job in jobs:
            job.result()


@pytest.mark.slow
def test_held_bodies_and_dear_answers_stop_no_paying_sender(web: Web) -> None:
    key, other = key_of("paying"), key_of("attacking")
    heads = [*[head()] * 9, *[head(key=other)] * 8]
    with holding(web, heads), posting_bombs(web, other) as codes:
        assert_open(web, key)
    assert set(codes) == {200}


@pytest.mark.parametrize(
    "text",
    [
        head(length="Transfer-Encoding: chunked"),
        head(version="1.0"),
        head(length="Content-Length: 99999999999"),
        head(length="Content-Length: 2"),
        head("/v1/traces"),
        head(key="fs_000000000000_" + "A" * 43),
    ],
    ids=["chunked", "HTTP/1.0", "endless", "longer than it says", "telemetry", "unknown key"],
)
def test_who_has_no_key_is_refused_before_the_body(web: Web, text: bytes) -> None:
    """The answer comes while the body is still on its way."""
    assert web.send_raw(text, LONGEST_WAIT_SECONDS).startswith(b"HTTP/1."), "no answer"
    assert web.send_raw(text + b"[" * 20_000, LONGEST_WAIT_SECONDS).split(b" ")[1] == b"401"


def test_a_refused_sender_of_a_whole_body_reads_why(web: Web) -> None:
    headers = {"Authorization": "Bearer none", "Content-Type": "application/json"}
    code, answer = web.ask("POST", "/api/v1/events", b" " * HELD_BYTES, headers)
    assert (code, json.loads(answer)["code"]) == (401, "authentication_failed")


@pytest.mark.slow
def test_a_key_that_is_revoked_before_its_body_ends_stores_nothing(web: Web) -> None:
    key = key_of("leaving")
    body = json.dumps([wire_event()]).encode()
    with socket.create_connection(("127.0.0.1", web.port), 5) as link:
        link.sendall(head(key=key, length=f"Content-Length: {len(body)}") + body[:10])
        assert web.post_events(key, [])[0] == 200
        ApiKey.objects.update(revoked_at=clock.now())
        time.sleep(KEEP_SECONDS)
        link.sendall(body[10:])
        assert statuses([link.recv(65_536)]) == [401]
    assert not StoredEvent.objects.exists()

"""Every chat and paging service that a channel may name, against a sink on loopback (S17)."""

import json
import re
import signal
import string
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest

from diagnostics.alerting.senders import SendError, chat
from diagnostics.alerting.senders.chat import send_order
from diagnostics.alerting.senders.chat_services import SERVICES, ChatAddressError, check_address
from tests.sinks import Sink, agreeing_sink, dripping_sink

TITLE = "Degrading since 14:32"
_random = Random(17)


def word(length: int, letters: str = string.ascii_letters + string.digits) -> str:
    """Make up what looks like a token."""
    return "".join(_random.choices(letters, k=length))


HEX = string.digits + "abcdef"
# HOST stands for the sink, by a name or by its address.
SAMPLES = {
    "betterstack": f"betterstack://{word(24)}/ops@example.org",
    "discord": f"discord://{word(18, string.digits)}/{word(64)}",
    "firehydrant": f"firehydrant://{word(32)}",
    "flock": f"flock://{word(24)}",
    "form": "form://HOST/hook",
    "forms": "forms://HOST/hook",
    "gchat": f"gchat://{word(8)}/{word(12)}/{word(20)}",
    "gotify": f"gotify://HOST/{word(15)}",
    "gotifys": f"gotifys://HOST/{word(15)}",
    "ilert": f"ilert://{word(24)}",
    "incidentio": f"incidentio://{word(26)}/{word(32)}",
    "json": "json://HOST/hook",
    "jsons": "jsons://HOST/hook",
    "matrix": f"matrix://user:{word(12)}@HOST/!room:example.org",
    "matrixs": f"matrixs://user:{word(12)}@HOST/!room:example.org",
    "mmost": f"mmost://HOST/{word(24)}",
    "mmosts": f"mmosts://HOST/{word(24)}",
    "nctalk": f"nctalk://user:{word(12)}@HOST/room",
    "nctalks": f"nctalks://user:{word(12)}@HOST/room",
    "ntfy": "ntfy://HOST/topic",
    "ntfys": "ntfys://HOST/topic",
    "opsgenie": f"opsgenie://{word(8, HEX)}-0000-0000-0000-{word(12, HEX)}",
    "pagerduty": f"pagerduty://{word(32)}@{word(20)}",
    "pagertree": f"pagertree://int_{word(12)}",
    "pbul": f"pbul://{word(32)}",
    "pover": f"pover://{word(30)}@{word(30)}",
    "rocket": f"rocket://{word(12)}/{word(40)}@HOST/#ops",
    "rockets": f"rockets://{word(12)}/{word(40)}@HOST/#ops",
    "signl4": f"signl4://{word(10)}",
    "slack": f"slack://T{word(9)}/B{word(9)}/{word(24)}/#ops",
    "spike": f"spike://{word(32, HEX)}",
    "splunk": f"splunk://route@{word(8, HEX)}-0000-0000-0000-{word(12, HEX)}",
    "squadcast": f"squadcast://{word(32)}",
    "tgram": f"tgram://{word(9, string.digits)}:{word(35)}/{word(8, '123456789')}",
    "twilio": f"twilio://AC{word(32, HEX)}:{word(32, HEX)}@15551231234/15551231236",
    "twist": f"twist://{word(12)}:ops@example.org/12345:67890",
    "victorops": f"victorops://route@{word(8, HEX)}-0000-0000-0000-{word(12, HEX)}",
    "webex": f"webex://{word(80)}",
    "workflow": f"workflow://HOST/{word(32, HEX)}/{word(43)}",
    "workflows": f"workflows://HOST/{word(32, HEX)}/{word(43)}",
    "wxteams": f"wxteams://{word(80)}",
    "xml": "xml://HOST/hook",
    "xmls": "xmls://HOST/hook",
    "zulip": f"zulip://bot@example/{word(32)}",
}

# Names lead to the sink and its certificate is believed; nothing leaves this machine.
HARNESS = """
import itertools, json, socket, sys, time
import requests
# apprise waits between its requests, which a sink does not ask for.
time.sleep = lambda seconds: None
plan = itertools.cycle(json.loads({plan!r}))
looked_up = socket.getaddrinfo
def resolve(host, port, *rest, **more):
    if host == "127.0.0.1":
        return looked_up(host, port, *rest, **more)
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, {port}))
            for address in next(plan)]
socket.getaddrinfo = resolve
def stay(event, values):
    if event == "socket.connect" and values[1][0] != "127.0.0.1":
        raise ConnectionRefusedError(values[1][0])
send = requests.Session.send
requests.Session.send = lambda self, request, **more: send(
    self, request, **{{**more, "verify": False}})
from diagnostics.alerting.senders.chat_process import main
sys.addaudithook(stay)
main()
"""
# One of each way of connecting; the others run in `make nightly`.
DAILY = {"json", "jsons", "matrix", "slack", "workflow"}
LOOPBACK = [["127.0.0.1"]]
# A public address first, this machine second: in two answers, or in one.
REBINDING = [[["8.8.8.8"], ["127.0.0.1"]], [["8.8.8.8", "127.0.0.1"]]]


@pytest.fixture(scope="module")
def sink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sink]:
    with agreeing_sink(tmp_path_factory.mktemp("sink")) as running:
        yield running


@pytest.fixture(autouse=True)
def _nothing_heard(sink: Sink) -> None:
    sink.heard.clear()


def send(
    address: str,
    sink: Sink,
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    *,
    allow_private: bool,
    answers: Any = LOOPBACK,
    seconds: float = 60.0,
    **more: Any,
) -> str:
    """Send a message while names are resolved as planned."""
    harness = HARNESS.format(plan=json.dumps(answers), port=sink.port)
    monkeypatch.setattr(chat, "PROGRAM", ("-c", harness))
    monkeypatch.setattr(chat, "MOST_SECONDS", seconds)
    order = {
        "address": address,
        "title": TITLE,
        "topic": "acme/m-1",
        "body": "31 % of 412 runs",
        "links": "",
        "tone": "warning",
        "attributes": {},
        "storage": str(folder),
        "allow_private": allow_private,
        **more,
    }
    return send_order(order)


def test_every_service_is_tried_here() -> None:
    assert set(SAMPLES) == set(SERVICES)


@pytest.mark.slow
@pytest.mark.parametrize(
    "scheme",
    [pytest.param(one, marks=[] if one in DAILY else pytest.mark.nightly) for one in SAMPLES],
)
def test_s17_a_service_delivers_to_loopback_only_where_private_addresses_are_open(
    scheme: str, sink: Sink, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for host in (f"127.0.0.1:{sink.port}", "chat.example.org"):
        address = SAMPLES[scheme].replace("HOST", host)
        with pytest.raises(SendError, match="not public"):
            send(address, sink, monkeypatch, tmp_path, allow_private=False)
        assert sink.heard == []
        if host == address:
            break
    address = SAMPLES[scheme].replace("HOST", "chat.example.org")
    answer = send(address, sink, monkeypatch, tmp_path, allow_private=True)
    assert answer.startswith("accepted by ")
    # Matrix encrypts what it sends over TLS.
    assert any("412" in heard or "m.room.encrypted" in heard for heard in sink.heard)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["slack", "tgram"])
def test_a_name_that_a_service_would_take_for_markup_arrives_as_it_is_written(
    scheme: str, sink: Sink, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    told: dict[str, Any] = {"title": "acme/<m-1> degrades", "body": "acme/<m-1> and <!channel>"}
    send(SAMPLES[scheme], sink, monkeypatch, tmp_path, allow_private=True, **told)
    heard = "\n".join(sink.heard)
    assert re.search(r"&lt;\\u200b!channel&gt;", heard)
    assert "&lt;m-1&gt; degrades" in heard
    assert "<m-1>" not in heard
    assert "<!channel>" not in heard


@pytest.mark.slow
def test_a_recovery_resolves_the_alert_that_the_fire_has_triggered(
    sink: Sink, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ties = {"dedup": "failsoft.example.org/incidents/12", "action": "map"}
    for tone, action in (("warning", "trigger"), ("success", "resolve")):
        send(
            SAMPLES["pagerduty"],
            sink,
            monkeypatch,
            tmp_path,
            allow_private=True,
            tone=tone,
            attributes=ties,
        )
        told = json.loads(sink.heard.pop().partition("\n")[2])
        assert (told["event_action"], told["dedup_key"]) == (action, ties["dedup"])


@pytest.mark.slow
@pytest.mark.parametrize("answers", REBINDING)
@pytest.mark.parametrize("scheme", ["json", "jsons", "matrix", "workflows"])
def test_s17_a_name_that_leads_elsewhere_the_second_time_is_not_connected(
    scheme: str, answers: Any, sink: Sink, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    address = SAMPLES[scheme].replace("HOST", "rebinding.example.org")
    for _ in range(2):
        with pytest.raises(SendError):
            send(address, sink, monkeypatch, tmp_path, allow_private=False, answers=answers)
        answers = answers[::-1]
    assert sink.heard == []


@pytest.mark.slow
def test_s17_a_service_that_drips_is_given_up(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with dripping_sink() as dripping:
        started = time.monotonic()
        with pytest.raises(SendError, match="no answer within"):
            send(
                f"json://127.0.0.1:{dripping.port}/hook",
                dripping,
                monkeypatch,
                tmp_path,
                allow_private=True,
                seconds=2.0,
            )
        assert time.monotonic() - started < 20


@pytest.mark.slow
def test_s17_a_forbidden_address_is_named_however_long_the_process_took_to_start(
    sink: Sink, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys.modules[__name__], "HARNESS", f"import time; time.sleep(6)\n{HARNESS}")
    with pytest.raises(SendError, match=r"resolves to 127\.0\.0\.1, which is not public"):
        send(
            f"json://127.0.0.1:{sink.port}/hook",
            sink,
            monkeypatch,
            tmp_path,
            allow_private=False,
            seconds=5.0,
        )


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("workflows://h/w/s?template=/etc/passwd", "'template'"),
        ("slack://T1/B1/x?template=http://127.0.0.1/", "'template'"),
        ("slack://T1/B1/x?to=%23a;TEMPLATE=/x", "'TEMPLATE'"),
        ("slack://T1/B1/x?%74emplate=/x", "'template'"),
        ("slack://T1/B1/x?+template=/x", r"'\+template'"),
        ("discord://1/x?avatar_url=http://127.0.0.1/", "'avatar_url'"),
        ("tgram://1:x/2?image=yes", "'image'"),
        ("json://h/?verify=no", "'verify'"),
        ("json://h/?redirect=yes", "'redirect'"),
        ("ntfy://h/t?attach=file:///etc/passwd", "'attach'"),
        ("mailto://u:p@example.org?smtp=127.0.0.1", "mailto:// is not supported"),
        ("syslog://", "syslog:// is not supported"),
        ("file:///etc/passwd", "file:// is not supported"),
        ("https://slack.com.example.org/services/T/B/x", "https:// is not supported"),
        ("https://hooks.slack.com/services/T/B/x?template=/x", "'template'"),
        ("slack", "not an address such as"),
        ("slack://T1/B1/x\r\n", "not an address such as"),
    ],
)
def test_s17_an_address_that_names_a_file_or_another_host_is_refused_by_name(
    address: str, why: str
) -> None:
    with pytest.raises(ChatAddressError, match=why):
        check_address(address)


@pytest.mark.parametrize(
    "address", ["json://h/?+X-Team=a&:kind=b&-q=c&method=put", "slack://T/B/x?to=%23ops"]
)
def test_an_address_with_ordinary_parameters_is_taken(address: str) -> None:
    assert check_address(address).module


@pytest.mark.slow
def test_a_secret_that_is_no_address_is_not_repeated(
    sink: Sink, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    secret = word(32)
    for address in (secret, f"{secret}://x", f"pagertree://int_{secret}"):
        with pytest.raises(SendError, match="not an address") as refusal:
            send(address, sink, monkeypatch, tmp_path, allow_private=False)
        assert secret[:8] not in str(refusal.value)


@pytest.mark.slow
def test_the_sending_process_ends_by_itself_when_its_worker_was_killed(tmp_path: Path) -> None:
    name = "diagnostics.alerting.senders.chat_process"
    shorter = f"import {name} as program; program.LIFE_SECONDS = 2; program.main()"
    with dripping_sink() as dripping:
        order = {
            "address": f"json://127.0.0.1:{dripping.port}/hook",
            "title": TITLE,
            "topic": "acme/m-1",
            "body": "31 %",
            "links": "",
            "tone": "warning",
            "attributes": {},
            "storage": str(tmp_path),
            "allow_private": True,
            "seconds": 60,
        }
        ended = subprocess.run(
            [sys.executable, "-c", shorter],
            input=json.dumps(order).encode(),
            check=False,
            timeout=25,
        )
    assert ended.returncode == -signal.SIGALRM


def test_s17_the_sending_process_opens_no_file_of_the_machine(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("x", encoding="utf-8")
    words = (
        "from diagnostics.alerting.senders.chat_process import watch;"
        f"watch({str(tmp_path / 'store')!r}, allow_private=True);"
        f"open({str(secret)!r})"
    )
    ended = subprocess.run(
        [sys.executable, "-c", words], capture_output=True, text=True, check=False
    )
    assert "PermissionError: a message to a service opens no file" in ended.stderr

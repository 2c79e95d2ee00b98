"""What chat and paging services refuse, and what of an incident they keep together."""

import json
from collections.abc import Iterator
from pathlib import Path
from socket import create_server
from typing import Any
from urllib.parse import unquote, unquote_plus

import pytest

from diagnostics.alerting.senders import SendError, chat
from tests.diagnostics.alerting.notifications.test_chat_services import SAMPLES, send, word
from tests.sinks import Sink, agreeing_sink

pytestmark = pytest.mark.slow
KEY = "failsoft.example.org/incidents/12"
LINKS = "https://failsoft.example.org/incidents/12/\nAcknowledge: https://failsoft.example.org/a/"
NAMES = {"ntfy": "ntfy.example.org", "workflows": "teams.example.org"}
LONG = {
    "title": f"Degrading since 14:32 UTC: acme/{'größe-' * 30}, 31 % of 412 runs, mostly truncated",
    "body": "\n".join(f"{number}. Degrading: acme/m-{number}, {'x' * 99}" for number in range(300)),
    "links": LINKS,
}
# One of each kind every day; the others run in `make nightly`.
DAILY = ("discord", "slack?blocks=yes")
LIMITED = (*DAILY, "gchat", "ntfy", "opsgenie", "slack", "tgram", "workflows")
PAGERS = ("firehydrant", "ilert", "incidentio", "pagerduty", "pagertree", "signl4", "splunk")


def nightly(names: Any, daily: Any) -> list[Any]:
    return [pytest.param(one, marks=[] if one in daily else pytest.mark.nightly) for one in names]


@pytest.fixture(scope="module")
def sink(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sink]:
    with agreeing_sink(tmp_path_factory.mktemp("sink")) as running:
        yield running


@pytest.fixture(autouse=True)
def _ready(sink: Sink) -> None:
    sink.heard.clear()
    sink.refusal = None


@pytest.fixture
def post(sink: Sink, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Send to a service, whose name may have parameters."""

    def post(name: str, **more: Any) -> str:
        scheme, _, query = name.partition("?")
        address = SAMPLES[scheme].replace("HOST", NAMES.get(scheme, "chat.example.org"))
        address += f"?{query}" if query else ""
        return send(address, sink, monkeypatch, tmp_path, allow_private=True, **more)

    return post


@pytest.mark.parametrize("name", nightly(LIMITED, DAILY))
def test_a_message_longer_than_the_service_takes_loses_lines_and_keeps_its_links(
    name: str, sink: Sink, post: Any
) -> None:
    assert post(name, **LONG).startswith("accepted by ")
    (heard,) = sink.heard
    assert "failsoft.example.org/incidents/12/" in heard
    assert "failsoft.example.org/a/" in heard
    assert "mostly truncated" in heard
    assert "m-299" not in heard


def test_pagerduty_gets_one_line_and_the_rest_as_details(sink: Sink, post: Any) -> None:
    post("pagerduty", **LONG)
    (heard,) = sink.heard
    told = json.loads(heard.partition("\n")[2])["payload"]
    assert told["summary"] == LONG["title"]
    assert told["custom_details"]["text"] == f"{LONG['body']}\n{LINKS}"


@pytest.mark.parametrize(
    ("status", "answer", "is_final"),
    [
        pytest.param(400, b"invalid_blocks", True, id="what it never takes"),
        pytest.param(404, b"no_service", False, id="what an administrator can correct"),
        pytest.param(500, b"rollup_error", False, id="what may pass"),
    ],
)
def test_a_refusal_is_worded_by_the_service_and_final_by_its_status(
    status: int, answer: bytes, is_final: bool, sink: Sink, post: Any
) -> None:
    sink.refusal = (status, {}, answer)
    with pytest.raises(SendError, match=answer.decode()) as refusal:
        post("slack")
    assert refusal.value.is_final is is_final


def test_a_connection_that_fails_says_how_and_repeats_no_address(
    sink: Sink, post: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with create_server(("127.0.0.1", 0)) as closed:
        monkeypatch.setattr(sink, "port", closed.getsockname()[1])
    with pytest.raises(SendError, match="NewConnectionError") as refusal:
        post("slack")
    assert "services" not in str(refusal.value)


def test_a_refusal_with_status_200_repeats_its_reason_and_nothing_else(
    sink: Sink, post: Any
) -> None:
    token = word(32)
    answer = {"ok": False, "error": "channel_not_found", "access_token": token}
    sink.refusal = (200, {}, json.dumps(answer).encode())
    with pytest.raises(SendError, match="channel_not_found") as refusal:
        post("slack")
    assert token not in str(refusal.value)


@pytest.mark.parametrize(
    ("headers", "answer", "wait"),
    [
        pytest.param({"Retry-After": "30"}, b'{"ok": false}', "30", id="a header"),
        pytest.param({}, b'{"ok": false, "parameters": {"retry_after": 7}}', "7", id="JSON"),
    ],
)
def test_a_service_that_asks_to_wait_is_heard(
    headers: dict[str, str], answer: bytes, wait: str, sink: Sink, post: Any
) -> None:
    sink.refusal = (429, headers, answer)
    with pytest.raises(SendError) as refusal:
        post("tgram")
    assert (refusal.value.retry_after, refusal.value.is_final) == (wait, False)


@pytest.mark.parametrize("name", nightly(PAGERS, {"ilert", "splunk"}))
def test_a_recovery_names_the_alert_of_its_fire(name: str, sink: Sink, post: Any) -> None:
    fields = dict.fromkeys(chat.KEYED[name], KEY)
    bodies = []
    for tone, title in (("warning", "Degrading since 14:32"), ("success", "Resolved after 2 h")):
        post(name, tone=tone, title=title, attributes={"action": "map", **fields})
        bodies.append(json.loads(sink.heard.pop().partition("\n")[2]))
    fired, resolved = bodies
    (place,) = (name for name, value in fired.items() if value == KEY)
    assert resolved[place] == KEY
    states = ("event_action", "eventType", "event_type", "message_type", "status", "X-S4-Status")
    assert [fired.get(one) for one in states] != [resolved.get(one) for one in states]


def test_opsgenie_closes_an_alert_by_its_alias(sink: Sink, post: Any) -> None:
    post("opsgenie", tone="success", attributes={"alias": KEY})
    (heard,) = sink.heard
    path, _, query = heard.splitlines()[0].split()[1].partition("?")
    assert unquote(path) == f"/v2/alerts/{KEY}/close"
    assert (path.count("/"), query) == (4, "identifierType=alias")


def test_a_test_message_opens_an_alert_at_opsgenie(sink: Sink, post: Any) -> None:
    post("opsgenie", tone="info")
    (heard,) = sink.heard
    assert heard.startswith("POST /v2/alerts\n")


# What the services show, with their paths and parameters.
FLOW = f"workflows/{word(32)}/triggers/manual/paths/invoke"
SIGNED = f"sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig={word(43)}"
DIRECT = "https://default0a1b2c.d3.environment.api.powerplatform.com:443/powerautomate/automations/direct"


@pytest.mark.parametrize(
    ("address", "path"),
    [
        (f"https://hooks.slack.com/services/T{word(9)}/B{word(9)}/{word(24)}", "/services/T"),
        (f"https://discord.com/api/webhooks/{10**17}/{word(68)}", "/api/webhooks/1"),
        (f"{DIRECT}/{FLOW}?api-version=1&{SIGNED}", f"/powerautomate/automations/direct/{FLOW}?"),
        (f"{DIRECT}/cu/08/{FLOW}?api-version=1&{SIGNED}", f"/direct/cu/08/{FLOW}?api-version=1"),
        (
            f"https://prod-05.westeurope.logic.azure.com:443/{FLOW}?api-version=2016-06-01&{SIGNED}",
            f"/{FLOW}?api-version=2016-06-01",
        ),
        (
            f"https://chat.googleapis.com/v1/spaces/{word(11)}/messages?key={word(9)}&token={word(9)}",
            "/v1/spaces/",
        ),
    ],
    ids=["slack", "discord", "teams", "teams with a routing id", "teams before", "google chat"],
)
def test_the_address_that_a_service_shows_is_taken_as_it_is(
    address: str, path: str, sink: Sink, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert send(address, sink, monkeypatch, tmp_path, allow_private=True).startswith("accepted by ")
    (heard,) = sink.heard
    assert path in heard.partition("\n")[0]


def test_a_phone_shows_the_title_of_a_message_to_slack(sink: Sink, post: Any) -> None:
    for name in ("slack", "slack?blocks=yes"):
        sink.heard.clear()
        post(name, title="[P1] warning: acme/<!channel> & m-1, 31 % of 412 runs")
        (heard,) = sink.heard
        (attachment,) = json.loads(heard.partition("\n")[2])["attachments"]
        shown = "[P1] warning: acme/&lt;\u200b!channel&gt; &amp; m-1, 31 % of 412 runs"
        assert attachment["fallback"] == shown


def test_the_messages_of_an_incident_have_one_topic_at_zulip(sink: Sink, post: Any) -> None:
    for title in ("[P1] warning: acme/m-1, 31 %", "[P1] Resolved after 2 h: acme/m-1"):
        post("zulip", title=title, topic="[P1] acme/m-1")
    topics = [unquote_plus(heard.partition("topic=")[2].partition("&")[0]) for heard in sink.heard]
    assert topics == ["[P1] acme/m-1"] * 2
    assert "Resolved+after+2+h" in sink.heard[1]


def test_the_messages_of_an_incident_have_one_thread_at_google_chat(sink: Sink, post: Any) -> None:
    post("gchat", attributes=dict.fromkeys(chat.KEYED["google_chat"], KEY))
    (heard,) = sink.heard
    assert "messageReplyOption=REPLY_MESSAGE_FALLBACK_TO_NEW_THREAD" in heard
    assert json.loads(heard.partition("\n")[2])["thread"] == {"thread_key": KEY}


def test_a_name_is_no_mention_at_teams(sink: Sink, post: Any) -> None:
    post("workflows", body="acme/<at>m-1</at> fails")
    (heard,) = sink.heard
    assert '"mention"' not in heard


def test_pagerduty_names_us_and_the_project_as_the_source(sink: Sink, post: Any) -> None:
    post("pagerduty", attributes={"source": "failsoft.example.org", "component": "P1"})
    (heard,) = sink.heard
    told = json.loads(heard.partition("\n")[2])["payload"]
    assert (told["source"], told["component"]) == ("failsoft.example.org", "P1")


def test_a_name_calls_nobody(sink: Sink, post: Any) -> None:
    post("discord", body="acme/@everyone fails, <@&1234> and acme/<!channel>")
    (heard,) = sink.heard
    assert "everyone" in heard
    for call in ("@everyone", "<@&", "<!channel"):
        assert call not in heard


def test_a_name_is_no_link_under_other_words(sink: Sink, post: Any) -> None:
    names = "[Acknowledge](https://evil.example) and <https://evil.example|Acknowledge>"
    post("discord", title=f"acme/{names}", body=f"acme/{names} fails")
    (heard,) = sink.heard
    assert heard.count("evil.example") == 4
    for markup in ("](", "<https:"):
        assert markup not in heard

"""What senders write forges no line of a log and reaches no terminal as a command of it."""

import json
from io import StringIO
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import Project
from diagnostics.accounts.projects import issue_key
from tests.diagnostics.builders import wire_event
from tests.security.web import running_web

pytestmark = pytest.mark.django_db(transaction=True)
FORGED = json.dumps({"event": "signed_in", "user": "admin", "level": "info"})
# A line of its own, the colours and title of a terminal, ends of lines that only some readers know.
HOSTILE = f"x\r\n{FORGED}\n\x1b[2J\x1b]0;owned\x07\x9b31m\x85\u2028{FORGED}\u202eend"


def requests(key: str) -> list[bytes]:
    """Return requests with hostile values wherever a sender may write some."""
    named = wire_event(**dict.fromkeys(("source", "model", "provider", "release"), HOSTILE))
    broken = {"name": HOSTILE, "event_id": HOSTILE}
    body = json.dumps([named, wire_event(attempt=HOSTILE), broken, HOSTILE]).encode()
    form = urlencode({"login": HOSTILE, "password": HOSTILE}).encode()
    spans = json.dumps({"resourceSpans": HOSTILE, HOSTILE: []}).encode()
    path, auth = quote(HOSTILE), f"Authorization: Bearer {key}"
    json_type = "Content-Type: application/json"
    return [
        write_request("POST", "/api/v1/events", body, auth, json_type),
        write_request("POST", "/v1/traces", spans, auth, json_type),
        write_request("POST", "/api/v1/events", body, f"{auth}\x9b31m", json_type),
        write_request("GET", f"/{path}?{path}={path}", b"", "User-Agent: \x9b31mred"),
        write_request("GET", f"/api/v1/failures?{path}={path}&cursor={path}", b"", auth),
        write_request("POST", "/accounts/login/", form, "Origin: http://\x9b31m\x85x"),
        write_request("POST", "/accounts/login/", form, "Referer: \x9b0m", "Cookie: a=\x85"),
        write_request("GET", "/", b"", "X-Forwarded-For: \x9b31m", host="a\x9b31m\x85b"),
        write_request("GET", "/", b"", host="<b>evil</b>"),
        write_request("GET", "/", b"", "User-Agent: \x1b[31m"),
        write_request("PO\x1b[31mST", "/api/v1/events", b"", auth),
    ]


def write_request(
    method: str, path: str, body: bytes, *headers: str, host: str = "127.0.0.1"
) -> bytes:
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", "Connection: close", *headers]
    head = "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""])
    return head.encode("latin-1", "replace") + body


@pytest.mark.slow
def test_no_request_forges_a_line_of_the_log(tmp_path: Path) -> None:
    key = issue_key(Project.objects.create(slug="p", name="P"), "k", [Scope.ADMIN]).text
    log = tmp_path / "web.log"
    with log.open("wb") as file, running_web(file, FAILSOFT_LOG_LEVEL="DEBUG") as web:
        answers = [web.send_raw(request, 30) for request in requests(key)]
    assert all(answers[:2]), answers
    lines = log.read_bytes().decode("ascii").splitlines()
    logged = [json.loads(line) for line in lines if line.startswith("{")]
    others = [line for line in lines if not line.startswith("{")]
    assert {"request_does_not_fit_settings", "page_refused"} <= {x["event"] for x in logged}
    assert not any(entry["event"] == "signed_in" for entry in logged)
    assert all(line.isprintable() and "signed_in" not in line for line in others), others


def test_a_command_prints_nothing_that_a_terminal_obeys(tmp_path: Path) -> None:
    Project.objects.create(slug="default", name="D")
    value = {"stringValue": HOSTILE}
    attributes = [{"key": HOSTILE, "value": value}, {"key": "gen_ai.request.model", "value": value}]
    span = {"traceId": HOSTILE, "spanId": HOSTILE, "name": HOSTILE, "attributes": attributes}
    request = {"resourceSpans": [{"scopeSpans": [{"spans": [span, {HOSTILE: HOSTILE}, HOSTILE]}]}]}
    files = [tmp_path / "spans.jsonl", tmp_path / "odd.jsonl"]
    files[0].write_text(f"{json.dumps(request)}\n{json.dumps(request)}\n{HOSTILE}\n")
    files[1].write_text(json.dumps({HOSTILE: HOSTILE}))
    printed = StringIO()
    for file in files:
        with pytest.raises(CommandError) as refusal:
            call_command("import_traces", str(file), stdout=printed, stderr=printed)
        printed.write(f"{refusal.value}\n")
    for line in printed.getvalue().split("\n"):
        assert line.isprintable(), line

"""`failsoft check`: send one run to a server, and read back what became of it."""

import argparse
import json
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

from failsoft.telemetry.connection import (
    KEYS,
    NoServerError,
    ServerAddress,
    ServerReply,
    connection_of,
)

NODE = "failsoft_check"
# The first one cannot be read, the second one can.
TEXTS = ("Sure, here you go!", '{"ok": true}')
SCHEMA = {"type": "object", "required": ["ok"], "properties": {"ok": {"type": "boolean"}}}
READ_SECONDS, POLL_SECONDS = 10.0, 0.25
RIGHT, WRONG, NO_ADDRESS = 0, 1, 2
# Of sending, then of reading.
REFUSALS: Mapping[int, tuple[str, str]] = {
    401: ("key_refused", "the key is refused: it is wrong, revoked or expired"),
    403: ("no_scope", "the key may not {verb}: it lacks the scope {scope}"),
    404: ("wrong_address", "something else answers there: {path} is not found"),
    405: ("wrong_address", "something else answers there: {path} takes no such request"),
    429: ("too_many", "the key sends too much; try again later"),
    503: ("unavailable", "the server or its database is not available; try again later"),
}


class CheckFailedError(Exception):
    """One step failed; `code` names it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Checked:
    """How the check ended; `outcome` and `attempts` are the server's judgement of the run."""

    code: str
    message: str
    url: str = ""
    run: str = ""
    outcome: str = ""
    attempts: int = 0

    @property
    def exit_code(self) -> int:
        """0 arrived and judged, 1 something failed, 2 there is no address."""
        return {"arrived": RIGHT, "no_address": NO_ADDRESS}.get(self.code, WRONG)


def add_check(commands: Any) -> None:  # noqa: ANN401 - argparse keeps its type private
    parser = commands.add_parser("check", help="send one run to a server and read it back")
    parser.add_argument("--url", help="address of the server; else FAILSOFT_URL")
    parser.add_argument("--key", help="key with the scopes ingest and read; else FAILSOFT_API_KEY")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.set_defaults(run=_run)


def check(url: str | None = None, key: str | None = None) -> Checked:
    """Send a run of two attempts, the first one invalid, and return how it was judged."""
    try:
        server = connection_of(url, key)
    except ValueError as error:
        return Checked("no_address", str(error))
    if not server.key:
        return Checked("no_key", f"no key: set {KEYS[0]}", server.url)
    run = f"check-{uuid4().hex[:12]}"
    try:
        _send(server, run)
        found = _read(server, run)
    except CheckFailedError as error:
        return Checked(error.code, str(error), server.url, run)
    outcome, attempts = str(found["outcome"]), int(found["attempts"])
    message = f"arrived, judged as {outcome} at attempt {attempts}"
    return Checked("arrived", message, server.url, run, outcome, attempts)


def _run(options: argparse.Namespace) -> int:
    checked = check(options.url, options.key)
    if options.json:
        text = json.dumps({"ok": checked.exit_code == RIGHT, **asdict(checked)}, indent=2)
    else:
        where = f"{checked.url}: " if checked.url else ""
        page = f"\n{checked.url}/runs/{checked.run}/" if checked.exit_code == RIGHT else ""
        text = f"{where}{checked.message}{page}"
    (sys.stdout if options.json or checked.exit_code == RIGHT else sys.stderr).write(f"{text}\n")
    return checked.exit_code


def _send(server: ServerAddress, run: str) -> None:
    now = datetime.now(UTC)
    items = [
        {
            "name": "answered",
            "node": NODE,
            "correlation_id": run,
            "occurred_at": (now - timedelta(seconds=len(TEXTS) - attempt)).isoformat(),
            "attempt": attempt,
            "provider": "failsoft",
            "model": "check",
            "source": "failsoft check",
            "environment": "check",
            "text": text,
            "answer_schema": SCHEMA,
        }
        for attempt, text in enumerate(TEXTS, start=1)
    ]
    answer = _ask(server, "POST", "/api/v1/events", items, ("send", "ingest"))
    stored = answer.body.get("accepted") if isinstance(answer.body, dict) else None
    if stored != len(items):
        raise CheckFailedError("not_stored", f"the server did not store the run: {answer.detail}")


def _read(server: ServerAddress, run: str) -> Mapping[str, Any]:
    deadline = time.monotonic() + READ_SECONDS
    while True:
        try:
            body = _ask(server, "GET", f"/api/v1/runs/{run}", None, ("read", "read")).body
            if isinstance(body, dict) and body.get("outcome") not in (None, "open"):
                return body
        except CheckFailedError as error:
            if error.code != "wrong_address":
                raise CheckFailedError(error.code, f"arrived, but {error}") from None
        if time.monotonic() > deadline:
            raise CheckFailedError("not_judged", f"arrived, but not judged in {READ_SECONDS:g} s")
        time.sleep(POLL_SECONDS)


def _ask(
    server: ServerAddress, method: str, path: str, body: object, right: tuple[str, str]
) -> ServerReply:
    try:
        answer = server.request(method, path, body)
    except NoServerError as error:
        raise CheckFailedError("no_server", f"no server answers: {error}") from None
    if answer.status == 200 and answer.body is not None:
        return answer
    if answer.status == 200:
        raise CheckFailedError("wrong_address", "something else answers there: it sends no JSON")
    code, sentence = REFUSALS.get(answer.status, ("refused", "{detail}"))
    values = {"verb": right[0], "scope": right[1], "path": path, "detail": answer.detail}
    raise CheckFailedError(code, sentence.format(**values))

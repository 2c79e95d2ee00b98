"""The few calls of Failsoft's REST interface that the examples need; standard library only.

FAILSOFT_URL and FAILSOFT_API_KEY name another installation than the local stack.
"""

import json
import os
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

URL = os.environ.get("FAILSOFT_URL", "http://127.0.0.1:8000")
KEY_FILE = Path(__file__).resolve().parent.parent / ".local" / "api-key"
ENDED = ("completed", "failed", "cancelled")
POLL_SECONDS = 0.5

Record = dict[str, object]


class RefusedError(Exception):
    """The request was refused; the message says what is wrong with it."""


class Client:
    """Submit goals, wait for them, answer what they ask."""

    def __init__(self, url: str, key: str) -> None:
        self.url = url
        self.key = key

    def submit(self, order: Record) -> Record:
        """Queue a goal."""
        return self._call("POST", "/api/v1/goals", order)

    def answer(self, goal: Record, answer: Record) -> Record:
        """Answer a waiting goal: `{"text": ...}` or `{"confirmed": ...}`."""
        return self._call("POST", f"/api/v1/goals/{goal['id']}/answer", answer)

    def wait(self, goal: Record, seconds: float = 600) -> Record:
        """Stay until the goal has ended or waits for an answer."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            record = self._call("GET", f"/api/v1/goals/{goal['id']}")
            if record["status"] in (*ENDED, "waiting_user"):
                return record
            time.sleep(POLL_SECONDS)
        raise RefusedError(f"{goal['id']} has not ended in {seconds:g} s")

    def _call(self, method: str, path: str, body: Record | None = None) -> Record:
        request = urllib.request.Request(  # noqa: S310 - our own address
            f"{self.url}{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={
                "Authorization": f"Bearer {self.key}",
                "Content-Type": "application/json",
            },
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - same
                record: Record = json.load(answer)
                return record
        except urllib.error.HTTPError as error:
            raise RefusedError(f"{error.code}: {error.read().decode()}") from None
        except OSError as error:
            raise RefusedError(f"{self.url} cannot be reached: {error}") from None


def open_client() -> Client:
    """The client of the environment, else of the local stack; ends the program without a key."""
    key = os.environ.get("FAILSOFT_API_KEY", "")
    if not key and not KEY_FILE.exists():
        sys.exit(f"no API key: set FAILSOFT_API_KEY (there is no {KEY_FILE})")
    return Client(URL, key or KEY_FILE.read_text(encoding="ascii").strip())


def describe_attempts(record: Record) -> list[str]:
    """One line an attempt: what came of it, and where the first error is."""
    lines = []
    for attempt in record["attempts"]:  # type: ignore[attr-defined] # JSON
        error = (attempt["errors"] or [{}])[0]
        place = (
            f" line {error['line']} column {error['column']}"
            if error.get("line")
            else ""
        )
        why = f": {attempt['error_type']}{place}" if attempt["error_type"] else ""
        simple = ", simplified" if attempt["simplified"] else ""
        lines.append(f"attempt {attempt['attempt']}: {attempt['state']}{why}{simple}")
    return lines

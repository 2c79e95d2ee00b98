"""The few calls of Failsoft's REST interface that the examples need; standard library only.

They find the running local stack by themselves; FAILSOFT_URL and FAILSOFT_API_KEY name
another installation. As a program it prints the two, for shell scripts.
"""

import json
import os
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

LOCAL = Path(__file__).resolve().parent.parent / ".local"
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
            headers={"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"},
        )
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - same
                record: Record = json.load(answer)
                return record
        except urllib.error.HTTPError as error:
            raise RefusedError(f"{error.code}: {error.read().decode()}") from None
        except OSError as error:
            raise RefusedError(f"{self.url} cannot be reached: {error}") from None


def find_installation() -> tuple[str, str]:
    """Return address and key; ends the program where neither is set and no stack runs."""
    url, key = os.environ.get("FAILSOFT_URL"), os.environ.get("FAILSOFT_API_KEY")
    folder = find_data_folder()
    try:
        # The running stack writes the first, its first start the second.
        url = url or json.loads((folder / "runtime.json").read_text())["settings"]["base_url"]
        key = key or (folder / "api-key").read_text(encoding="ascii").strip()
    except OSError:
        sys.exit(
            f"The local stack is not running (data folder {folder}). Start it with"
            " `make run`, or set FAILSOFT_URL and FAILSOFT_API_KEY."
        )
    return str(url), key


def find_data_folder() -> Path:
    """Return the stack's data folder: named, remembered from `--data`, or `.local`."""
    pointer = LOCAL / "data-dir"
    remembered = pointer.read_text(encoding="utf-8").strip() if pointer.exists() else LOCAL
    return Path(os.environ.get("FAILSOFT_DATA_DIR") or remembered)


def open_client() -> Client:
    """Return the client of the installation."""
    return Client(*find_installation())


def describe_attempts(record: Record) -> list[str]:
    """One line an attempt: what came of it, and where the first error is."""
    lines = []
    for attempt in record["attempts"]:  # type: ignore[attr-defined] # JSON
        error = (attempt["errors"] or [{}])[0]
        place = f" line {error['line']} column {error['column']}" if error.get("line") else ""
        why = f": {attempt['error_type']}{place}" if attempt["error_type"] else ""
        simple = ", simplified" if attempt["simplified"] else ""
        lines.append(f"attempt {attempt['attempt']}: {attempt['state']}{why}{simple}")
    return lines


if __name__ == "__main__":
    sys.stdout.write("{} {}\n".format(*find_installation()))

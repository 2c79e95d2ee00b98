"""A planner on loopback that is wrong, silent or gone at known rates, and notes what it served."""

import json
import re
import socket
import struct
import threading
import time
from collections import Counter
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from random import Random
from typing import Any

from tests.faults.test_runs import names, plan

# Of a hundred calls: no plan at all, no answer in time, a connection that is reset.
RATES = {"invalid": 10, "hang": 5, "reset": 2}
HANG_SECONDS = 6.0
NUMBER = re.compile(r"soak goal (\d+)\b")
WRONG = (
    "First I would look at what is there, then say it.",
    '{"steps": [{"step_id": "step_2", "tool": "keyed"}]}',
    '{"steps": [{"step_id": "step_1", "tool": {"name": "keyed", "args": {"na',
)


class Planner:
    """The server; what it says to the n-th call of a goal follows from the seed alone."""

    def __init__(self, seed: int, rates: Mapping[str, int] = RATES) -> None:
        self.seed, self.rates = seed, rates
        self.served: Counter[tuple[int, str]] = Counter()
        self._calls: Counter[int] = Counter()
        self._lock = threading.Lock()
        kind = type("Answering", (_Answering,), {"planner": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), kind)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        """Where it answers, as a provider's row says it."""
        return f"http://127.0.0.1:{self.server.server_port}/v1"

    def choose(self, goal: int) -> tuple[str, Random]:
        """Decide what the next call of a goal gets."""
        with self._lock:
            self._calls[goal] += 1
            chance = Random(f"{self.seed}/{goal}/{self._calls[goal]}")
        drawn = chance.uniform(0, 100)
        for kind, rate in self.rates.items():
            drawn -= rate
            if drawn < 0:
                return kind, chance
        return "good", chance

    def note(self, goal: int, kind: str) -> None:
        """Remember what was served to its end."""
        with self._lock:
            self.served[goal, kind] += 1

    def count(self, kind: str) -> int:
        """How many answers of a kind were served."""
        return sum(n for (_, served), n in self.served.items() if served == kind)


class _Answering(BaseHTTPRequestHandler):
    planner: Planner

    def do_POST(self) -> None:
        asked: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        found = NUMBER.search(json.dumps(asked["messages"]))
        goal = int(found[1]) if found else -1
        kind, chance = self.planner.choose(goal)
        if kind == "hang":
            time.sleep(HANG_SECONDS)
            self.close_connection = True
        elif kind == "reset":
            self._reset()
        else:
            good = json.dumps(plan("keyed", *names(f"goal{goal}"), before=0.1))
            self._say(good if kind == "good" else chance.choice(WRONG))
        self.planner.note(goal, kind)

    def _reset(self) -> None:
        linger = struct.pack("ii", 1, 0)
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        self.connection.close()
        self.close_connection = True

    def _say(self, text: str) -> None:
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        usage = {"prompt_tokens": 50, "completion_tokens": 50}
        body = json.dumps({"choices": [choice], "usage": usage}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: object) -> None:
        """Say nothing."""

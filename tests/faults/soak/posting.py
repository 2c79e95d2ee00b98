"""Events of outside agents, posted through all faults; one in twenty is sent again."""

import time
from datetime import UTC, datetime
from random import Random
from threading import Thread
from typing import Any

from tests.diagnostics.builders import degraded, succeeded, wire_event
from tests.faults.soak.asking import Client

BATCH = 100
AGAIN = 5
URL = "/api/v1/events"
PATIENCE_SECONDS = 1.0


class Poster(Thread):
    """Posts batches, each until it is acknowledged; `pace` is the rest after each."""

    def __init__(self, client: Client, events: int, chance: Random) -> None:
        super().__init__(daemon=True)
        self.client, self.events, self.chance = client, events, chance
        self.acknowledged: list[str] = []
        self.resent = 0
        self.unequal = 0
        self.pace = PATIENCE_SECONDS
        self._sent: list[dict[str, Any]] = []

    def run(self) -> None:
        """Post all of them."""
        makers = (wire_event, succeeded, degraded)
        while len(self.acknowledged) < self.events:
            now = datetime.now(UTC).isoformat()
            fresh = [makers[n % 3](occurred_at=now) for n in range(BATCH)]
            again = self.chance.sample(self._sent, AGAIN) if self._sent else []
            told = self.client.post(URL, [*fresh, *again])
            self.unequal += told["accepted"] + told["duplicates"] != BATCH + len(again)
            self.acknowledged += [event["event_id"] for event in fresh]
            self.resent += len(again)
            self._sent = (self._sent + fresh)[-50 * BATCH :]
            time.sleep(self.pace)

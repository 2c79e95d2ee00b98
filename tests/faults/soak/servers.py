"""What the soak runs on: PostgreSQL that is stopped at once, and workers that are kept up."""

import signal
import threading
from contextlib import ExitStack, suppress
from pathlib import Path

from config.local import postgres
from tests import embedded
from tests.faults.fleet import CELERY, Fleet
from tests.faults.stack import eventually

WATCH_SECONDS = 0.5
START_SECONDS = 60


class Database:
    """A PostgreSQL that can be stopped at once, by `end`, and started again."""

    def __init__(self, folder: Path, end: signal.Signals = signal.SIGQUIT) -> None:
        self.end = end
        self.folder, self.sockets = folder, folder / "s"
        self.sockets.mkdir(mode=0o700)
        postgres.initialise(folder / "pg")
        self._running = ExitStack()
        self.url = postgres.database_url(self.sockets)

    def start(self) -> None:
        """Start it and wait until it takes connections.

        After a kill it does not start before the last of its processes has ended.
        """
        assert eventually(self._is_started, START_SECONDS)
        assert eventually(lambda: postgres.ensure_database(self.sockets), 60)

    def _is_started(self) -> bool:
        command = postgres.server_command(self.folder / "pg", self.sockets)
        socket = self.sockets / ".s.PGSQL.5432"
        running = embedded.running(command, socket, self.folder / "pg.log", self.end)
        with suppress(RuntimeError):
            self._running.enter_context(running)
            return True
        return False

    def stop(self) -> None:
        """Stop it without a word to anybody."""
        self._running.close()


class KeptFleet(Fleet):
    """A fleet whose processes are started again when they end, as a service manager does."""

    def __init__(self, folder: Path, database_url: str) -> None:
        super().__init__(folder, database_url)
        self.restarts = 0
        self._words: dict[str, tuple[str, ...]] = {}
        self._is_over = threading.Event()
        self._lock = threading.Lock()
        threading.Thread(target=self._watch, daemon=True).start()

    def _start(self, name: str, *words: str) -> None:
        self._words[name] = words
        super()._start(name, *words)

    def kill_and_restart(self, name: str) -> None:
        """Kill a worker with all its processes, and start it anew."""
        with self._lock:
            self.stop_worker(name, signal.SIGKILL)
            self._start(name, *self._words[name])

    def _watch(self) -> None:
        while not self._is_over.wait(WATCH_SECONDS):
            with self._lock:
                for name, process in list(self.processes.items()):
                    if process.poll() is not None:
                        self.restarts += 1
                        self._start(name, *self._words[name])

    def end(self) -> None:
        """Leave nothing behind."""
        self._is_over.set()
        with self._lock:
            super().end()

    def start_beats(self, count: int) -> None:
        """Start several clocks."""
        for number in range(count):
            self._start(f"beat{number}", *CELERY, "beat", "--pidfile=")

    def migrate(self) -> None:
        """Make the tables."""
        self.call(
            "import django; django.setup();"
            "from django.core.management import call_command as c;"
            "c('migrate', verbosity=0)"
        )

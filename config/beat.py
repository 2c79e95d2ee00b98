"""Beat: it knows tasks by their names, goes on when a clock is set back, and waits idly."""

from typing import Any

import structlog
from celery.apps.beat import Beat
from celery.beat import Scheduler, SchedulingError
from django.conf import settings
from django.utils.log import configure_logging

logger = structlog.get_logger(__name__)


class LeanBeat(Beat):
    """Celery's beat without the code of the tasks, which is half of its memory."""

    def init_loader(self) -> None:
        configure_logging(settings.LOGGING_CONFIG, settings.LOGGING)
        self.app.finalize()  # type: ignore[union-attr] # always has one


class SteadyScheduler(Scheduler):
    """Celery's scheduler without a file, runs in the future, and spinning.

    With a file beat ended where the disk was full or the folder was read-only. Without runs in
    the future, a clock that is set back by two hours does not stop it for two hours.
    """

    def setup_schedule(self) -> None:
        """Make every task due: it does what is due by its rows, and beat may restart hourly."""
        super().setup_schedule()
        for entry in self.schedule.values():
            entry.last_run_at -= entry.schedule.run_every  # type: ignore[union-attr] # an interval

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Queue what is due; return the seconds to wait."""
        for entry in self.schedule.values():
            now = entry.default_now()
            if entry.last_run_at and entry.last_run_at > now:
                entry.last_run_at = now
                # The times in the heap are of the old clock: it is built again.
                self._heap = None
        return super().tick(*args, **kwargs)

    def apply_entry(self, entry: Any, producer: Any = None) -> None:  # noqa: ANN401 - as the base
        """Queue a task; if the broker takes none, one line says why."""
        try:
            self.apply_async(entry, producer=producer, advance=False)
        except SchedulingError as error:
            logger.warning("task_not_queued", error=str(error), setting="BROKER_URL")

    def adjust(self, n: float, drift: float = 0.0) -> float:
        """Return the seconds to wait: Celery's end 10 ms early, which beat would spend spinning."""
        return n + drift

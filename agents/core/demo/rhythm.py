"""How busy it is at a moment, and chance that keeps its word over a few dozen draws."""

from dataclasses import dataclass
from datetime import datetime
from math import cos, pi
from random import Random

BUSIEST_HOUR = 14
QUIETEST_SHARE = 0.45
WEEKEND_SHARE = 0.7
SATURDAY = 5


def traffic_share(at: datetime) -> float:
    """Give the share of peak traffic at a moment (UTC), between 0.3 and 1."""
    hour = at.hour + at.minute / 60
    swing = (1 + cos((hour - BUSIEST_HOUR) * 2 * pi / 24)) / 2
    share = QUIETEST_SHARE + (1 - QUIETEST_SHARE) * swing
    return share * WEEKEND_SHARE if at.weekday() >= SATURDAY else share


@dataclass(slots=True)
class SteadyChance:
    """A share that is met over any stretch of draws, at irregular distances.

    Plain chance would make a healthy series look ill now and then.
    """

    random: Random
    owed: float = 0.0
    due: float = 0.5

    def happens(self, share: float) -> bool:
        """Draw once at this share; shares may change from draw to draw."""
        self.owed += share
        if self.owed < self.due:
            return False
        self.owed -= 1
        self.due = self.random.uniform(0.1, 0.9)
        return True

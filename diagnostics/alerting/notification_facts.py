"""What a notification tells: frozen when it is written, so that each try says the same."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, Field

from diagnostics.figures import percent
from diagnostics.verdict.wording import Sentence, part_words


class Fact(BaseModel):
    """What never changes once it is known."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class FactRate(Fact):
    """A share of 0 to 1 with its 95 % interval, of so many, and what was usual."""

    share: float
    low: float | None = None
    high: float | None = None
    baseline: float | None = None
    n: int = 0
    counted: str = "runs"

    @property
    def part(self) -> str:
        """The rate and of how many."""
        return part_words(self.share, self.n, self.counted.removesuffix("s"))

    @property
    def words(self) -> str:
        """The rate as a sentence would say it."""
        told = self.part
        if self.low is not None and self.high is not None:
            told += f" (95 % between {percent(self.low)} and {percent(self.high)})"
        return told


class AdviceLine(Fact):
    """One thing to change, and why."""

    text: str
    evidence: str = ""


class SampleRun(Fact):
    """One failed run: its reference, and the path of its page."""

    reference: str
    path: str


class DigestLine(Fact):
    subject: str
    path: str
    at: datetime


class Facts(Fact):
    """What a notification says; texts are redacted, links are paths.

    Times in texts are in UTC until `in_zone` has put them into the channel's zone.
    """

    reason: str
    project: str
    severity: str = "warning"
    at: datetime
    title: str = ""
    zone: str = "UTC"
    # The verdict: as parts, all of it as text, what and since when, and the reason.
    told: Sentence | None = None
    sentence: str = ""
    headline: str = ""
    why: str = ""
    incident: int | None = None
    path: str = ""
    onset: datetime | None = None
    # Both ends of its 95 % interval, where it is known to no more than that.
    onset_low: datetime | None = None
    onset_high: datetime | None = None
    fired_at: datetime | None = None
    ended_at: datetime | None = None
    rate: FactRate | None = None
    cause: str = ""
    advice: list[AdviceLine] = Field(default_factory=list)
    samples: list[SampleRun] = Field(default_factory=list)
    rules: list[str] = Field(default_factory=list)
    slices: list[str] = Field(default_factory=list)
    more_slices: int = 0
    lines: list[DigestLine] = Field(default_factory=list)
    more_lines: int = 0
    # Why a canary or test was sent, or how long nobody has acknowledged.
    note: str = ""
    # The alarm ends though nothing got better: the level has become the usual one.
    is_usual: bool = False
    # Who resolved it; empty when it recovered by itself.
    ended_by: str = ""
    is_reopened: bool = False

    def in_zone(self, zone: str) -> "Facts":
        """Return the same with the times of its texts in a zone."""
        if self.told is None:
            return self.model_copy(update={"zone": zone})
        headline, why = self.told.written(ZoneInfo(zone), self.at)
        texts = {"headline": headline, "why": why, "sentence": f"{headline} {why}".strip()}
        return self.model_copy(update={"zone": zone, **texts})

    def as_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json")

    @property
    def lasted(self) -> float | None:
        """Seconds from the onset to the end, or to now while it goes on."""
        begun = self.onset or self.fired_at
        if begun is None:
            return None
        return ((self.ended_at or self.at) - begun).total_seconds()


def rate_of(verdict: Mapping[str, Any]) -> FactRate | None:
    """Read the rate of a verdict as `GET /api/v1/verdict` writes it; None without one."""
    share = verdict.get("rate")
    if not isinstance(share, int | float):
        return None
    return FactRate(
        share=share,
        low=verdict.get("low"),
        high=verdict.get("high"),
        baseline=verdict.get("baseline"),
        n=verdict.get("runs") or 0,
        counted=verdict.get("counted") or "runs",
    )


def advice_of(verdict: Mapping[str, Any]) -> list[AdviceLine]:
    """Read what a verdict says to change."""
    found = verdict.get("advice") or []
    return [AdviceLine.model_validate(one) for one in found if isinstance(one, Mapping)]

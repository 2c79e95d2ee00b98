"""What was said of each case, beside the truth: right, abstaining, partly right or wrong."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from statistics import median
from typing import Any

from bench.verdict_cases import OK, Truth
from bench.verdict_fourth.oracle import oracle_onset
from bench.verdict_fourth.stories import MIXED, FourthCase, Happening
from diagnostics.analysis.statistics import wilson_interval

CLOSE = timedelta(minutes=25)
OUTCOMES = ("right", "abstains", "partly", "missed", "wrong")
NOT_US = "not us"


@dataclass(frozen=True, slots=True)
class Incident:
    """One cause as it was said."""

    cause: str
    value: str
    since: datetime | None
    low: datetime | None
    high: datetime | None


@dataclass(frozen=True, slots=True)
class Judged:
    """An answer of GET /api/v1/verdict about a case."""

    case: FourthCase
    incidents: Sequence[Incident]
    text: str
    """The sentence and every advice."""
    outcome: str = field(init=False)

    def __post_init__(self) -> None:
        """Judge it."""
        object.__setattr__(self, "outcome", _judge(self.case, self.incidents))

    @property
    def is_proper(self) -> bool:
        """Whether it is right, or abstains where nothing could be told."""
        return self.outcome == "right"

    @property
    def misleads(self) -> bool:
        """Whether it advises what the truth makes harmful, or exonerates us uncompared."""
        said = self.text.lower()
        return any(part in said for part in self.case.script.harmful)

    @property
    def exonerates(self) -> bool:
        """Whether it says "not us" where there is nothing to compare with."""
        return bool(self.case.script.harmful) and NOT_US in self.text.lower()

    @property
    def onset_error(self) -> timedelta | None:
        """How far off the onset is; None where it is not asked for."""
        truths = self.case.truths
        if len(truths) != 1 or self.outcome != "right" or not self.incidents:
            return None
        since, true = self.incidents[0].since, truths[0].since
        return abs(since - true) if since and true else None

    @property
    def oracle_error(self) -> timedelta | None:
        """How far off the onset is that who knows both rates would tell."""
        true, told = self.case.truth.since, oracle_onset(self.case, CLOSE)
        return abs(told - true) if told and true else None

    @property
    def holds_onset(self) -> bool | None:
        """Whether the interval holds the onset; None where there is no one step or interval."""
        if self.onset_error is None or not self.case.script.is_sharp:
            return None
        first, true = self.incidents[0], self.case.truths[0].since
        if first.low is None or first.high is None or true is None:
            return None
        return first.low <= true <= first.high


def read_answer(case: FourthCase, answer: Mapping[str, Any]) -> Judged:
    """Return an answer of the API, judged."""
    told = answer.get("incidents") or [answer]
    incidents = [_incident(item) for item in told if item.get("cause")]
    advice = [part for item in told for part in (item.get("advice") or answer["advice"])]
    texts = [answer["sentence"], *(str(item.get("sentence", "")) for item in told)]
    texts += [f"{part['text']} {part['evidence']}" for part in advice]
    return Judged(case, incidents, " ".join(texts))


def report(answers: Sequence[Judged]) -> Iterator[str]:
    """Yield the table of families, the shares with Wilson intervals and the worst family."""
    families: dict[str, list[Judged]] = defaultdict(list)
    for answer in answers:
        families[answer.case.kind].append(answer)
    wide = max(map(len, families))
    yield f"{'family':{wide}} " + " ".join(f"{name:>8}" for name in OUTCOMES)
    for kind, mine in families.items():
        counts = Counter(answer.outcome for answer in mine)
        yield f"{kind:{wide}} " + " ".join(f"{counts[name] or '.':>8}" for name in OUTCOMES)
    worst = min(families, key=lambda kind: _mean(a.is_proper for a in families[kind]))
    yield f"worst family: {worst}, {_mean(a.is_proper for a in families[worst]):.0%}"
    yield _share("right or properly abstaining", [a.is_proper for a in answers], "95 %")
    yield _share("confidently wrong", [a.outcome == "wrong" for a in answers], "at most 2 %")
    yield _share("advice that misleads", [a.misleads for a in answers])
    yield f'"not us" without a comparison: {sum(a.exonerates for a in answers)} (goal 0)'
    several = [a for a in answers if len(a.case.truths) > 1]
    yield _share("causes at once told apart", [a.outcome == "right" for a in several], "90 %")
    yield from _onsets(answers)


def confusion(answers: Iterable[Judged]) -> Iterator[str]:
    """Yield how often what was said of which true cause."""
    pairs = Counter(
        (
            "+".join(truth.cause for truth in answer.case.truths) or OK,
            "+".join(incident.cause for incident in answer.incidents) or OK,
        )
        for answer in answers
    )
    for (truth, said), count in sorted(pairs.items()):
        yield f"{truth:28} said {said:40} {count}"


def miss(answer: Judged) -> str:
    """Return in one line what was said instead of the truth."""
    truths = "; ".join(f"{t.cause} {t.value} since {t.since:%d. %H:%M}" for t in answer.case.truths)
    said = "; ".join(f"{i.cause} {i.value} since {i.since}" for i in answer.incidents)
    return f"{answer.outcome} {answer.case.kind}/{answer.case.seed}: {truths or OK} -> {said or OK}"


def _judge(case: FourthCase, incidents: Sequence[Incident]) -> str:
    causes = [one for one in case.script.happenings if one.truth.cause != OK]
    if not causes:
        return _judge_calm(case, incidents)
    if not incidents:
        return "missed" if not any(MIXED & one.abstaining for one in causes) else "right"
    left = [one for one in causes if not any(_names(one, said) for said in incidents)]
    stray = [said for said in incidents if not any(_names(one, said) for one in causes)]
    if not left and not stray:
        return "right"
    if any(said.cause not in MIXED for said in stray):
        return "wrong"
    return "partly" if len(left) < len(causes) else "abstains"


def _judge_calm(case: FourthCase, incidents: Sequence[Incident]) -> str:
    happenings = case.script.happenings
    allowed = [said for said in incidents if any(_names(one, said) for one in happenings)]
    if len(allowed) == len(incidents):
        return "right"
    return "abstains" if all(said.cause in MIXED for said in incidents) else "wrong"


def _names(happening: Happening, said: Incident) -> bool:
    truth: Truth = happening.truth
    if said.cause in happening.abstaining or (said.cause, said.value) in happening.also:
        return True
    return said.cause == truth.cause and truth.value in {"", said.value}


def _incident(item: Mapping[str, Any]) -> Incident:
    since, low, high = (_time(item.get(name)) for name in ("since", "since_low", "since_high"))
    return Incident(item["cause"], item.get("cause_value") or "", since, low, high)


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _mean(values: Iterable[bool]) -> float:
    found = list(values)
    return sum(found) / max(len(found), 1)


def _share(name: str, values: Sequence[bool], goal: str = "") -> str:
    good, total = sum(values), len(values)
    if not total:
        return f"{name}: none asked"
    low, high = wilson_interval(good, total)
    told = f" (goal {goal})" if goal else ""
    return f"{name}: {good}/{total} = {good / total:.1%} [{low:.1%}, {high:.1%}]{told}"


def _onsets(answers: Sequence[Judged]) -> Iterator[str]:
    asked = [a for a in answers if a.case.script.is_sharp and a.onset_error is not None]
    errors = [a.onset_error for a in asked if a.onset_error is not None]
    if errors:
        minutes = median(error.total_seconds() / 60 for error in errors)
        yield _share("onset of one step within 25 min", [e <= CLOSE for e in errors], "90 %")
        known = [a.oracle_error for a in asked]
        told = [e is not None and e <= CLOSE for e in known]
        yield _share("the same by who knows what is hit and both rates", told)
        yield f"onset off by {minutes:.1f} min (median)"
    held = [a.holds_onset for a in answers if a.holds_onset is not None]
    yield _share("interval of the onset holds it", held, "92 to 98 %")

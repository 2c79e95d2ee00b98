"""What happens: one function a family, and its cases from a seed."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from math import sqrt
from random import Random
from typing import Any

from agents.demo.drawn_runs import DrawnRun
from bench.verdict_cases import OK, Truth
from bench.verdict_fourth.projects import (
    ANSWER_KINDS,
    CALL_KINDS,
    Effect,
    Project,
    Shares,
    Shift,
    Touches,
    draw_project,
    play,
)
from diagnostics.verdict.cells import Dimensions
from diagnostics.verdict.hypotheses import ReportedDeploy

START = datetime(2026, 10, 5, tzinfo=UTC)
SETTLED = timedelta(minutes=1)
HOUR = timedelta(hours=1)
LEAST_BEYOND = 14
"""Failing runs beyond the usual below which nobody could see what happens."""
CHANCE = 4.0
"""Standard deviations of the usual failures."""
MOST_DRAWS = 80
MIXED = frozenset({"mixed", "not_enough_data"})
ROUTE = ("another model", "another provider")
"""Advice that would mislead where no other model was seen to do better."""
Item = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Happening:
    """One cause: what fails more, which calls move, and what a verdict has to say of it."""

    truth: Truth
    effects: tuple[Effect, ...] = ()
    shifts: tuple[Shift, ...] = ()
    told: tuple[ReportedDeploy, ...] = ()
    also: frozenset[tuple[str, str]] = frozenset()
    """Other causes that are as right."""
    abstaining: frozenset[str] = frozenset()
    """Answers that properly say that it cannot be told."""


@dataclass(frozen=True, slots=True)
class Script:
    """All that happens in a case, and how its events are posted."""

    happenings: tuple[Happening, ...] = ()
    silent: frozenset[str] = frozenset()
    """Sources that post failing calls only."""
    harmful: tuple[str, ...] = ()
    """Advice that the truth would make harmful."""
    is_sharp: bool = True
    """Whether there is one step whose time an interval has to hold."""
    without_calls: bool = False
    repeated: float = 0.0
    """Share of events that are posted twice."""
    project: Project | None = None
    """In place of the drawn one."""
    least: int = LEAST_BEYOND


@dataclass(frozen=True, slots=True)
class Moment:
    """When it begins and when it is asked about."""

    begin: datetime
    now: datetime


Write = Callable[[Project, Moment, Random], Script]


@dataclass(frozen=True, slots=True)
class FourthCase:
    """A project and what happens in it."""

    kind: str
    seed: int
    project: Project
    script: Script
    now: datetime
    story: Any = field(init=False)

    def __post_init__(self) -> None:
        """Name the script as the posting of other benchmarks does."""
        object.__setattr__(self, "story", self.script)

    @property
    def truths(self) -> list[Truth]:
        """What happened, one for each cause; none where nothing degrades."""
        return [one.truth for one in self.script.happenings if one.truth.cause != OK]

    @property
    def truth(self) -> Truth:
        """The first cause."""
        return next(iter(self.truths), Truth(OK))

    def told(self) -> list[ReportedDeploy]:
        """Return the deploys as they were told."""
        told = [deploy for one in self.script.happenings for deploy in one.told]
        return [deploy for deploy in told if deploy.at <= self.now]

    def runs(self) -> Iterator[DrawnRun]:
        """Yield every run, the same ones each time."""
        return self._play(self.script.happenings)

    def as_posted(self, items: Iterator[Item]) -> Iterator[Item]:
        """Yield the events that reach the API, some of them twice."""
        random = Random(f"{self.kind} {self.seed} posting")  # noqa: S311 - a story
        for item in items:
            name = str(item.get("name", ""))
            if item.get("source") in self.script.silent and not name.endswith("parse_invalid"):
                continue
            yield item
            if random.random() < self.script.repeated:
                yield item

    def is_visible(self) -> bool:
        """Whether each cause shows since it began: beyond the usual, and beyond chance."""
        runs = list(self.runs())
        return all(self._shows(one, runs) for one in self.script.happenings if one.effects)

    def _shows(self, happening: Happening, runs: Sequence[DrawnRun]) -> bool:
        hit = [
            run
            for run in runs
            if any(e.touches(run.place) and e.strength(run.at) for e in happening.effects)
            and run.at >= (happening.truth.since or run.at)
        ]
        usual = sum(sum(self.project.shares_at(run.place).values()) for run in hit)
        beyond = sum(bool(run.calls[0]) for run in hit) - usual
        return beyond >= max(self.script.least, CHANCE * sqrt(usual + 1))

    def _play(self, happenings: tuple[Happening, ...]) -> Iterator[DrawnRun]:
        random = Random(f"{self.kind} {self.seed} runs")  # noqa: S311 - a story, not a secret
        begin = self.now - timedelta(days=self.project.days)
        effects = [effect for one in happenings for effect in one.effects]
        shifts = [shift for one in happenings for shift in one.shifts]
        for run in play(self.project, random, begin, self.now - SETTLED, effects, shifts):
            if not self.script.without_calls:
                yield run
            else:
                yield DrawnRun(run.at, run.place, ("other_invalid" if run.is_degraded else None,))


def fourth_cases(seed: int, each: int) -> Iterator[FourthCase]:
    """Yield so many cases of each family, each of another project at another time."""
    for kind in FAMILIES:
        for number in range(each):
            yield _visible_case(kind, seed * 1_000 + number)


def _visible_case(kind: str, seed: int) -> FourthCase:
    for draw in range(MOST_DRAWS):
        case = _draw_case(kind, seed * MOST_DRAWS + draw)
        if case.is_visible():
            return case
    raise ValueError(f"{kind} is never to be seen")


def _draw_case(kind: str, seed: int) -> FourthCase:
    random = Random(f"{kind} {seed}")  # noqa: S311 - a story, not a secret
    now = START + timedelta(minutes=random.uniform(9 * 1_440, 30 * 1_440))
    age = random.choice((0.5, 1.5, 4.0, 9.0, 20.0)) * random.uniform(0.8, 1.2)
    project = draw_project(random)
    script = FAMILIES[kind](project, Moment(now - age * HOUR, now), random)
    return FourthCase(kind, seed, script.project or project, script, now)


# What calls have in common.


def _anywhere(_: Dimensions) -> bool:
    return True


def _at(**values: str) -> Touches:
    return lambda place: all(getattr(place, name) == value for name, value in values.items())


def _of(model: tuple[str, str]) -> Touches:
    return _at(provider=model[0], model=model[1])


def _both(one: Touches, other: Touches) -> Touches:
    return lambda place: one(place) and other(place)


def _on(touches: Touches, shares: Shares, when: Moment, **more: Any) -> Effect:  # noqa: ANN401
    return Effect(touches, shares, more.pop("begin", when.begin), more.pop("end", when.now), **more)


def _since(touches: Touches, when: Moment, part: float = 1.0, **new: str) -> Shift:
    return Shift(touches, when.begin, when.now, new, part)


def _strength(random: Random) -> float:
    return random.uniform(0.2, 0.6)


def _perhaps(random: Random, *told: ReportedDeploy) -> tuple[ReportedDeploy, ...]:
    return told if random.random() < 0.6 else ()


# One cause.


def _model_worse(project: Project, when: Moment, random: Random, least: float = 0.08) -> Happening:
    model, kind = random.choice(project.models(least)), random.choice(ANSWER_KINDS)
    truth = Truth("model", "/".join(model), kind, when.begin)
    return Happening(truth, (_on(_of(model), {kind: _strength(random)}, when),))


def _prompt_worse(project: Project, when: Moment, random: Random) -> Happening:
    source, kind, version = random.choice(project.values("source")), ANSWER_KINDS[0], "rolled-v9"
    shift = _since(_at(source=source), when, prompt_version=version)
    effect = _on(_at(prompt_version=version), {kind: _strength(random)}, when)
    told = _perhaps(random, ReportedDeploy(when.begin, "prompt", version, source))
    return Happening(Truth("prompt", version, kind, when.begin), (effect,), (shift,), told)


def _release_worse(project: Project, when: Moment, random: Random) -> Happening:
    source, kind = random.choice(project.values("source")), random.choice(ANSWER_KINDS)
    shift = _since(_at(source=source), when, release="2.0")
    effect = _on(_at(source=source, release="2.0"), {kind: _strength(random)}, when)
    told = _perhaps(random, ReportedDeploy(when.begin, "release", "2.0", source))
    truth = Truth("release", f"{source} 2.0", kind, when.begin)
    return Happening(truth, (effect,), (shift,), told)


def _provider_out(project: Project, when: Moment, random: Random) -> Happening:
    provider, kind = random.choice(project.values("provider")), random.choice(CALL_KINDS)
    effect = _on(_at(provider=provider), {kind: random.uniform(0.3, 0.9)}, when)
    return Happening(Truth("provider_outage", provider, kind, when.begin), (effect,))


def model_step(project: Project, when: Moment, random: Random) -> Script:
    """One model answers worse at once."""
    return Script((_model_worse(project, when, random),))


def model_called_rarely(project: Project, when: Moment, random: Random) -> Script:
    """A model with a twentieth of the calls answers worse."""
    return Script((_model_worse(project, when, random, 0.02),))


def model_in_bursts(project: Project, when: Moment, random: Random) -> Script:
    """One model answers worse where runs come a dozen at a time."""
    project = replace(project, burst=12.0, hardness=1.5)
    return Script((_model_worse(project, when, random),), project=project)


def two_steps(project: Project, when: Moment, random: Random) -> Script:
    """A model was worse, recovered for hours, and is worse again: the second step counts."""
    second = _model_worse(project, when, random)
    (effect,) = second.effects
    earlier = replace(
        effect, begin=when.begin - 9 * HOUR, end=when.begin - random.uniform(2, 5) * HOUR
    )
    return Script((replace(second, effects=(effect, earlier)),))


def slow_drift(project: Project, when: Moment, random: Random) -> Script:
    """A model gets worse over forty hours."""
    when = replace(when, begin=when.now - random.uniform(36, 48) * HOUR)
    worse = _model_worse(project, when, random)
    effects = tuple(replace(effect, ramp=40 * HOUR) for effect in worse.effects)
    return Script((replace(worse, effects=effects),), is_sharp=False)


def provider_out(project: Project, when: Moment, random: Random) -> Script:
    """All models of a provider that has two or more end without answers."""
    project = draw_project(random, models=6)
    named = [p for p in project.values("provider") if len(_models_of(project, p)) > 1]
    if not named or len(project.values("provider")) < 2:
        return provider_out(project, when, random)
    kind = random.choice(CALL_KINDS)
    effect = _on(_at(provider=named[0]), {kind: random.uniform(0.3, 0.9)}, when)
    truth = Truth("provider_outage", named[0], kind, when.begin)
    return Script((Happening(truth, (effect,)),), project=project)


def rate_limit_of_one_model(project: Project, when: Moment, random: Random) -> Script:
    """One of two models of a provider is refused; the other, called rarely, goes well."""
    (makers, busy), others = ("google", "google-m0"), (("google", "google-m1"), ("groq", "groq-m2"))
    base = draw_project(random, models=1, sources=2, rate=(20, 160))
    weights, usual = {}, {}
    for place, weight in base.weights.items():
        for model, share in (((makers, busy), 1.0), (others[0], 0.06), (others[1], 0.7)):
            moved = place._replace(provider=model[0], model=model[1])
            weights[moved], usual[moved] = weight * share, base.usual[place]
    effect = _on(_of((makers, busy)), {"call_rate_limited": 0.55}, when)
    truth = Truth("model", f"{makers}/{busy}", "call_rate_limited", when.begin)
    return Script(
        (Happening(truth, (effect,)),), project=replace(base, weights=weights, usual=usual)
    )


def partly_out_at_a_long_node(project: Project, when: Moment, random: Random) -> Script:
    """A provider times out at one node alone, where answers are long."""
    provider, node = project.values("provider")[0], random.choice(project.values("node"))
    effect = _on(_at(provider=provider, node=node), {"call_timeout": 0.5}, when)
    also = {("model", f"{p}/{m}") for p, m in project.models() if p == provider}
    truth = Truth("provider_outage", provider, "call_timeout", when.begin)
    is_one = len(_models_of(project, provider)) == 1
    return Script(
        (Happening(truth, (effect,), also=frozenset(also if is_one else ()), abstaining=MIXED),)
    )


def prompt_at_one_source(project: Project, when: Moment, random: Random) -> Script:
    """A source gets a worse prompt version; the others keep theirs."""
    project = draw_project(random, sources=3)
    return Script((_prompt_worse(project, when, random),), project=project)


def prompt_in_two_steps(project: Project, when: Moment, random: Random) -> Script:
    """A worse prompt version for a twentieth of the calls, an hour later for all."""
    late = when.begin + HOUR * min(1.0, (when.now - when.begin) / (2 * HOUR))
    new = {"prompt_version": "rolled-v9"}
    shifts = (Shift(_anywhere, when.begin, late, new, 0.05), Shift(_anywhere, late, when.now, new))
    effect = _on(_at(**new), {"schema_invalid": _strength(random)}, when)
    told = _perhaps(random, ReportedDeploy(when.begin, "prompt", "rolled-v9"))
    truth = Truth("prompt", "rolled-v9", "schema_invalid", late)
    return Script((Happening(truth, (effect,), shifts, told),), is_sharp=False)


def release_worse(project: Project, when: Moment, random: Random) -> Script:
    """A source is released, and its calls fail."""
    project = draw_project(random, sources=3)
    return Script((_release_worse(project, when, random),), project=project)


def validator_stricter(project: Project, when: Moment, random: Random) -> Script:
    """Our checks refuse what was good, whoever answered."""
    effect = _on(_anywhere, {"schema_invalid": _strength(random)}, when)
    return Script((Happening(Truth("validator", "", "schema_invalid", when.begin), (effect,)),))


def new_model_bad(project: Project, when: Moment, random: Random) -> Script:
    """A model is put to use that never was good."""
    maker = project.values("provider")[0]
    new = {"provider": maker, "model": f"{maker}-fresh"}
    shift = _since(_anywhere, when, random.uniform(0.15, 0.5), **new)
    kind = random.choice(ANSWER_KINDS)
    effect = _on(_at(**new), {kind: 0.5}, when)
    truth = Truth("model", f"{maker}/{maker}-fresh", kind, when.begin)
    return Script((Happening(truth, (effect,), (shift,)),))


def one_of_sixty_models(project: Project, when: Moment, random: Random) -> Script:
    """One of sixty models answers worse."""
    project = draw_project(random, models=60, sources=1, rate=(80, 160))
    return Script((_model_worse(project, when, random, 0.01),), project=project)


def ends_only(project: Project, when: Moment, random: Random) -> Script:
    """One model answers worse; only the ends of runs are posted."""
    worse = _model_worse(project, when, random)
    truth = replace(worse.truth, top_kind="")
    return Script((replace(worse, truth=truth),), without_calls=True)


def late_and_twice(project: Project, when: Moment, random: Random) -> Script:
    """One model answers worse; a third of the events are posted twice."""
    return Script((_model_worse(project, when, random),), repeated=0.3)


def source_worse(project: Project, when: Moment, random: Random) -> Script:
    """The goals of one source get harder at all its models."""
    project = draw_project(random, sources=3)
    source, kind = random.choice(project.values("source")), random.choice(ANSWER_KINDS)
    effect = _on(_at(source=source), {kind: _strength(random)}, when)
    truth = Truth("source", source, kind, when.begin)
    return Script((Happening(truth, (effect,)),), project=project)


# Nothing to compare with.


def _one_model(random: Random) -> Project:
    return draw_project(random, models=1, sources=1, rate=(10, 160))


def _uncompared(kind: str, when: Moment, *effects: Effect, **more: Any) -> Script:  # noqa: ANN401
    cause = Happening(Truth("mixed", "", kind, when.begin), effects, abstaining=MIXED)
    return Script((cause,), harmful=ROUTE, **more)


def only_model_validator(project: Project, when: Moment, random: Random) -> Script:
    """There is one model, and our checks refuse what was good."""
    effect = _on(_anywhere, {"schema_invalid": _strength(random)}, when)
    return _uncompared("schema_invalid", when, effect, project=_one_model(random))


def only_model_budget(project: Project, when: Moment, random: Random) -> Script:
    """There is one model, and our token budget cuts its answers."""
    effect = _on(_anywhere, {"truncated": _strength(random)}, when)
    return _uncompared("truncated", when, effect, project=_one_model(random))


def only_model_worse(project: Project, when: Moment, random: Random) -> Script:
    """There is one model, and it got worse: nobody can tell it from us."""
    effect = _on(_anywhere, {"not_json": _strength(random)}, when)
    return _uncompared("not_json", when, effect, project=_one_model(random))


def prompt_at_one_model(project: Project, when: Moment, random: Random) -> Script:
    """A new prompt version goes out everywhere and fails at one model alone: the pair."""
    model = random.choice(project.models(0.15))
    shift = _since(_anywhere, when, prompt_version="plan-v2")
    effect = _on(_of(model), {"not_json": _strength(random)}, when)
    truth = Truth("pair", f"plan-v2 with {'/'.join(model)}", "not_json", when.begin)
    cause = Happening(truth, (effect,), (shift,), abstaining=MIXED)
    return Script((cause,), harmful=("route",))


def source_at_one_model(project: Project, when: Moment, random: Random) -> Script:
    """The only source of a model retries in a storm: source and model cannot be told apart."""
    project = draw_project(random, models=3, sources=2, rate=(20, 160))
    model, source = project.models()[0], "storm-svc"
    weights: dict[Dimensions, float] = {}
    usual: dict[Dimensions, Shares] = {}
    for place, weight in project.weights.items():
        named = place._replace(source=source) if _of(model)(place) else place
        weights[named] = weights.get(named, 0.0) + weight
        usual[named] = project.usual[place]
    effect = _on(_at(source=source), {"call_rate_limited": 0.5}, when)
    truth = Truth("pair", f"{source} with {'/'.join(model)}", "call_rate_limited", when.begin)
    cause = Happening(truth, (effect,), abstaining=MIXED)
    return Script((cause,), project=replace(project, weights=weights, usual=usual))


def failures_only(project: Project, when: Moment, random: Random) -> Script:
    """All sources post failing calls only, and there are more of them."""
    worse = _model_worse(project, when, random)
    cause = replace(worse, truth=Truth(OK), abstaining=MIXED)
    return Script((cause,), silent=frozenset(project.values("source")), harmful=ROUTE)


def failures_only_beside(project: Project, when: Moment, random: Random) -> Script:
    """One source posts failures only; a model gets worse for the others."""
    project = draw_project(random, sources=3, rate=(20, 160))
    silent = project.values("source")[-1]
    return Script(
        (_model_worse(project, when, random),), silent=frozenset({silent}), project=project
    )


# Nothing degrades.


def healthy(project: Project, when: Moment, random: Random) -> Script:
    """Nothing happens."""
    return Script()


def healthy_failures_only(project: Project, when: Moment, random: Random) -> Script:
    """All sources post failing calls only, as ever."""
    calm = Happening(Truth(OK), abstaining=MIXED)
    return Script((calm,), silent=frozenset(project.values("source")))


def healthy_in_bursts(project: Project, when: Moment, random: Random) -> Script:
    """Runs come twenty at a time, and goals differ in hardness."""
    return Script(project=replace(project, burst=20.0, hardness=2.0))


def deploy_harmless(project: Project, when: Moment, random: Random) -> Script:
    """Everything is released, and all goes on as it did."""
    shift = _since(_anywhere, when, release="2.0", prompt_version="plan-v2")
    told = (ReportedDeploy(when.begin, "release", "2.0"),)
    return Script((Happening(Truth(OK), (), (shift,), told),))


def rolled_back(project: Project, when: Moment, random: Random) -> Script:
    """A release was bad and was taken back three hours ago."""
    span = replace(when, begin=when.now - 9 * HOUR, now=when.now - 3 * HOUR)
    source = random.choice(project.values("source"))
    shift = Shift(_at(source=source), span.begin, span.now, {"release": "bad-1"})
    effect = _on(_at(release="bad-1"), {"schema_invalid": 0.5}, span)
    told = (ReportedDeploy(span.begin, "release", "bad-1", source),)
    return Script((Happening(Truth(OK), (effect,), (shift,), told),))


def recovered(project: Project, when: Moment, random: Random) -> Script:
    """A model was worse and has been well for hours."""
    end = when.now - random.uniform(3, 6) * HOUR
    worse = _model_worse(project, replace(when, begin=end - 4 * HOUR, now=end), random)
    return Script((replace(worse, truth=Truth(OK)),))


def hard_tenant(project: Project, when: Moment, random: Random) -> Script:
    """A source that was always hard sends twice as much: no deploy, no model."""
    project = draw_project(random, sources=3)
    hard = project.values("source")[-1]
    usual = {
        place: {"schema_invalid": 0.45} if place.source == hard else shares
        for place, shares in project.usual.items()
    }
    others = {"source": hard, "release": "1.0"}
    shift = _since(_at(source=project.values("source")[0]), when, 0.2, **others)
    also = frozenset({("source", hard)})
    cause = Happening(Truth(OK), (), (shift,), also=also, abstaining=MIXED)
    return Script((cause,), project=replace(project, usual=usual))


# Two causes at once.


def _apart(when: Moment, random: Random) -> Moment:
    """A second onset, at least two hours before the first."""
    return replace(when, begin=when.begin - random.uniform(2, 9) * HOUR)


def two_models(project: Project, when: Moment, random: Random) -> Script:
    """Two models of two providers get worse, hours apart, in two ways."""
    project = draw_project(random, models=6, rate=(20, 160))
    first, second = _pick_two(project, random)
    earlier = _apart(when, random)
    return _two(
        _worse_at(first, "not_json", earlier, random),
        _worse_at(second, "schema_invalid", when, random),
        project,
    )


def model_and_prompt(project: Project, when: Moment, random: Random) -> Script:
    """A model gets worse; hours later another source's prompt does."""
    project = draw_project(random, models=4, sources=3, rate=(20, 160))
    first, _ = _pick_two(project, random)
    worse = _worse_at(first, "truncated", _apart(when, random), random)
    return _two(worse, _prompt_worse(project, when, random), project)


def provider_and_release(project: Project, when: Moment, random: Random) -> Script:
    """A provider fails; hours before a source's release went wrong."""
    project = draw_project(random, models=6, sources=3, rate=(20, 160))
    released = _release_worse(project, _apart(when, random), random)
    return _two(released, _provider_out(project, when, random), project)


def two_causes_at_one_model(project: Project, when: Moment, random: Random) -> Script:
    """A model gets worse; hours before one source got a bad release that calls it too."""
    project = draw_project(random, models=3, sources=3, rate=(20, 160))
    released = _release_worse(project, _apart(when, random), random)
    return _two(released, _model_worse(project, when, random, 0.2), project)


def _two(first: Happening, second: Happening, project: Project) -> Script:
    return Script((first, second), project=project, is_sharp=False)


def _worse_at(model: tuple[str, str], kind: str, when: Moment, random: Random) -> Happening:
    truth = Truth("model", "/".join(model), kind, when.begin)
    return Happening(truth, (_on(_of(model), {kind: _strength(random)}, when),))


def _pick_two(project: Project, random: Random) -> tuple[tuple[str, str], tuple[str, str]]:
    often = project.models(0.08)
    first, second = random.sample(often if len(often) > 1 else project.models(), 2)
    return first, second


def _models_of(project: Project, provider: str) -> list[tuple[str, str]]:
    return [model for model in project.models() if model[0] == provider]


FAMILIES: Mapping[str, Write] = {
    write.__name__.replace("_", " "): write
    for write in (
        model_step,
        model_called_rarely,
        model_in_bursts,
        two_steps,
        slow_drift,
        provider_out,
        rate_limit_of_one_model,
        partly_out_at_a_long_node,
        prompt_at_one_source,
        prompt_in_two_steps,
        release_worse,
        validator_stricter,
        new_model_bad,
        one_of_sixty_models,
        ends_only,
        late_and_twice,
        source_worse,
        only_model_validator,
        only_model_budget,
        only_model_worse,
        prompt_at_one_model,
        source_at_one_model,
        failures_only,
        failures_only_beside,
        healthy,
        healthy_failures_only,
        healthy_in_bursts,
        deploy_harmless,
        rolled_back,
        recovered,
        hard_tenant,
        two_models,
        model_and_prompt,
        provider_and_release,
        two_causes_at_one_model,
    )
}

"""What happens in the second benchmark, one function a story, and its cases from a seed."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from random import Random

from bench.verdict_cases import OK
from bench.verdict_second.drawing import Extra, Move, SecondCase, Story
from bench.verdict_second.worlds import PARSE, SILENT, Shares, World, draw_world
from diagnostics.verdict.cells import Dimensions
from diagnostics.verdict.hypotheses import ReportedDeploy

START = datetime(2026, 11, 9, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
AGES = (20.0, 45.0, 120.0, 360.0, 720.0, 1_800.0)
"""Minutes since an incident began."""
LEAST_BEYOND = 12
"""Failing calls beyond the usual, below which nobody could see it."""
MOST_DRAWS = 60

Touches = Callable[[Dimensions], bool]


@dataclass(frozen=True, slots=True)
class When:
    """When it begins and when it is asked about."""

    moment: datetime
    now: datetime

    def after(self, minutes: float) -> datetime:
        """Give a time relative to the onset."""
        return self.moment + minutes * MINUTE


Write = Callable[[World, When, Random], Story]


def _strength(random: Random) -> float:
    return random.uniform(0.15, 0.7)


def _where(touches: Touches, shares: Shares, since: datetime) -> Extra:
    return lambda place, at: shares if at >= since and touches(place) else {}


def _ramp(touches: Touches, shares: Shares, since: datetime, minutes: float) -> Extra:
    def extra(place: Dimensions, at: datetime) -> Shares:
        if at < since or not touches(place):
            return {}
        part = min((at - since) / (minutes * MINUTE), 1.0)
        return {kind: share * part for kind, share in shares.items()}

    return extra


def _of_provider(provider: str) -> Touches:
    return lambda place: place.provider == provider


def _of_model(model: tuple[str, str]) -> Touches:
    return lambda place: (place.provider, place.model) == model


def _some_model(world: World, random: Random) -> tuple[str, str]:
    """One that is called at least a little."""
    often = [m for m in world.models if world.weight(_of_model(m)) >= 0.04]
    return random.choice(often)


def _some_provider(world: World, random: Random) -> str:
    often = [p for p in world.values("provider") if world.weight(_of_provider(p)) >= 0.04]
    return random.choice(often)


def _changed(touches: Touches, since: datetime, part: float = 1.0, **new: str) -> Move:
    """Give a part of some calls other versions from a time on."""

    def move(place: Dimensions, at: datetime, random: Random) -> Dimensions:
        is_moved = at >= since and touches(place) and random.random() < part
        return place._replace(**new) if is_moved else place

    return move


def _outage(world: World, when: When, random: Random) -> Story:
    """Calls to a provider time out, break off or are refused."""
    provider = _some_provider(world, random)
    kind, strength = random.choice(SILENT), random.uniform(0.25, 0.95)
    extra = _where(_of_provider(provider), {kind: strength}, when.moment)
    return Story("provider_outage", provider, kind, extra)


def _outage_ramp(world: World, when: When, random: Random) -> Story:
    """An outage that grows over an hour."""
    provider, kind = _some_provider(world, random), random.choice(SILENT)
    extra = _ramp(_of_provider(provider), {kind: 0.8}, when.moment, 60)
    return Story("provider_outage", provider, kind, extra)


def _outage_flapping(world: World, when: When, random: Random) -> Story:
    """An outage that comes and goes every fifteen minutes."""
    provider, kind = _some_provider(world, random), random.choice(SILENT)
    touches = _of_provider(provider)

    def extra(place: Dimensions, at: datetime) -> Shares:
        is_on = at >= when.moment and ((at - when.moment) // (15 * MINUTE)) % 2 == 0
        return {kind: 0.8} if is_on and touches(place) else {}

    return Story("provider_outage", provider, kind, extra)


def _outage_mixed_kinds(world: World, when: When, random: Random) -> Story:
    """An outage with timeouts, errors and refusals at once."""
    provider = _some_provider(world, random)
    shares = {"call_timeout": 0.3, "call_provider_error": 0.2, "call_rate_limited": 0.1}
    extra = _where(_of_provider(provider), shares, when.moment)
    return Story("provider_outage", provider, "call_timeout", extra)


def _surge(world: World, when: When, random: Random) -> Story:
    """Three times the traffic, and one provider refuses what is too much."""
    provider = _some_provider(world, random)
    shares = {"call_rate_limited": random.uniform(0.3, 0.6)}
    extra = _where(_of_provider(provider), shares, when.moment)
    return Story("provider_outage", provider, "call_rate_limited", extra, surge=3.0)


def _two_providers(world: World, when: When, random: Random) -> Story:
    """Two providers fail at once: no one of them is the cause."""
    one, other = world.values("provider")[:2]
    kind = random.choice(SILENT)

    def touches(place: Dimensions) -> bool:
        return place.provider in {one, other}

    if len(world.values("provider")) < 3:
        return Story(worse=_where(touches, {}, when.moment))
    return Story("mixed", "", kind, _where(touches, {kind: 0.6}, when.moment))


def _model(world: World, when: When, random: Random) -> Story:
    """One model answers worse at once."""
    model, kind = _some_model(world, random), random.choice(PARSE)
    extra = _where(_of_model(model), {kind: _strength(random)}, when.moment)
    return Story("model", "/".join(model), kind, extra)


def _model_ramp(world: World, when: When, random: Random) -> Story:
    """One model gets worse over an hour and a half."""
    model, kind = _some_model(world, random), random.choice(PARSE)
    extra = _ramp(_of_model(model), {kind: 0.6}, when.moment, 90)
    return Story("model", "/".join(model), kind, extra)


def _model_two_kinds(world: World, when: When, random: Random) -> Story:
    """One model answers worse in two ways."""
    model = _some_model(world, random)
    kind, other = random.sample(PARSE, 2)
    extra = _where(_of_model(model), {kind: 0.25, other: 0.12}, when.moment)
    return Story("model", "/".join(model), kind, extra)


def _rescued(world: World, when: When, random: Random) -> Story:
    """First attempts fail and retries rescue nearly all."""
    return _model(world, when, random)


def _late(world: World, when: When, random: Random) -> Story:
    """One model answers worse; the clock of the busiest source is behind."""
    late = random.uniform(5, 20) * MINUTE
    return replace(_model(world, when, random), late=late)


def _outcomes_only(world: World, when: When, random: Random) -> Story:
    """One model answers worse; only the ends of runs are posted."""
    return replace(_model(world, when, random), top_kind="", without_calls=True)


def _new_model(world: World, when: When, random: Random) -> Story:
    """A model is put to use that never was good."""
    provider = _some_provider(world, random)
    kind, name = random.choice(PARSE), f"{provider}-new"
    part = random.uniform(0.15, 0.5)

    def extra(place: Dimensions, _: datetime) -> Shares:
        return {kind: 0.45} if place.model == name else {}

    def move(place: Dimensions, at: datetime, chance: Random) -> Dimensions:
        if at < when.moment or chance.random() >= part:
            return place
        return place._replace(provider=provider, model=name)

    return Story("model", f"{provider}/{name}", kind, extra, move)


def _model_removed(world: World, when: When, random: Random) -> Story:
    """A model is no longer called; all others go on as they did."""
    gone, stays = random.sample(world.models, 2)

    def move(place: Dimensions, at: datetime, _: Random) -> Dimensions:
        if at < when.moment or (place.provider, place.model) != gone:
            return place
        moved = place._replace(provider=stays[0], model=stays[1])
        return next((p for p in world.usual if p == moved), place)

    return Story(move=move)


def _prompt(world: World, when: When, random: Random) -> Story:
    """A source gets a worse prompt version."""
    source, kind = random.choice(world.values("source")), random.choice(PARSE)
    touches = _of("source", source)
    return _new_prompt(touches, kind, _strength(random), when, source, random)


def _canary(world: World, when: When, random: Random) -> Story:
    """A worse prompt version for a small part of the calls."""
    kind, part = random.choice(PARSE), random.uniform(0.05, 0.2)
    touches = _anywhere
    return _new_prompt(touches, kind, 0.6, when, None, random, part)


def _prompt_in_steps(world: World, when: When, random: Random) -> Story:
    """A worse prompt version for ever more calls."""
    kind = random.choice(PARSE)

    def move(place: Dimensions, at: datetime, chance: Random) -> Dimensions:
        hours = (at - when.moment) / timedelta(hours=1)
        part = 0.0 if hours < 0 else 0.1 if hours < 1 else 0.4 if hours < 3 else 1.0
        is_moved = chance.random() < part
        return place._replace(prompt_version="steps-p9") if is_moved else place

    extra = _where(_of("prompt_version", "steps-p9"), {kind: 0.5}, when.moment)
    told = _perhaps(random, ReportedDeploy(when.moment, "prompt", "steps-p9"))
    return Story("prompt", "steps-p9", kind, extra, move, told)


def _staging_prompt(world: World, when: When, random: Random) -> Story:
    """A worse prompt version in staging alone."""
    if "staging" not in world.values("environment"):
        return Story()
    kind = random.choice(PARSE)
    touches = _of("environment", "staging")
    return _new_prompt(touches, kind, 0.6, when, None, random)


def _schema_one_node(world: World, when: When, random: Random) -> Story:
    """A new schema version at one node."""
    node = random.choice(world.values("node"))
    return _new_schema(_of("node", node), node, when, random)


def _release(world: World, when: When, random: Random) -> Story:
    """A source is released, and its calls fail."""
    source, kind = random.choice(world.values("source")), random.choice(PARSE)
    move = _changed(_of("source", source), when.moment, release="r101")

    def touches(place: Dimensions) -> bool:
        return place.source == source and place.release == "r101"

    extra = _where(touches, {kind: _strength(random)}, when.moment)
    told = _perhaps(random, ReportedDeploy(when.after(-1), "release", "r101", source))
    return Story("release", f"{source} r101", kind, extra, move, told)


def _validator(world: World, when: When, random: Random) -> Story:
    """Our checks refuse what was good, whoever answered."""
    extra = _where(_anywhere, {"schema_invalid": _strength(random)}, when.moment)
    return Story("validator", "", "schema_invalid", extra)


def _innocent_before(world: World, when: When, random: Random) -> Story:
    """A source is released 50 minutes before a model gets worse."""
    return _innocent(world, when, random, -50)


def _innocent_after(world: World, when: When, random: Random) -> Story:
    """A source is released 20 minutes after a model got worse."""
    return _innocent(world, when, random, 20)


def _over(world: World, when: When, random: Random) -> Story:
    """A model was worse for a third of the time, and is well again."""
    model, kind = _some_model(world, random), random.choice(PARSE)
    touches, end = _of_model(model), when.moment + (when.now - when.moment) / 3

    def extra(place: Dimensions, at: datetime) -> Shares:
        return {kind: 0.6} if when.moment <= at < end and touches(place) else {}

    return Story(worse=extra)


def _healthy(world: World, when: When, random: Random) -> Story:
    """Nothing happens."""
    return Story()


def _harmless_release(world: World, when: When, random: Random) -> Story:
    """Everything is released, and all goes on as it did."""
    move = _changed(_anywhere, when.moment, release="r101", prompt_version="all-p7")
    return Story(move=move, told=(ReportedDeploy(when.moment, "release", "r101"),))


def _innocent(world: World, when: When, random: Random, minutes: float) -> Story:
    source = random.choice(world.values("source"))
    at = when.after(minutes)
    story = _model(world, when, random)
    move = _changed(_of("source", source), at, release="r101")
    return replace(story, move=move, told=(ReportedDeploy(at, "release", "r101", source),))


def _new_prompt(
    touches: Touches,
    kind: str,
    strength: float,
    when: When,
    source: str | None,
    random: Random,
    part: float = 1.0,
) -> Story:
    move = _changed(touches, when.moment, part, prompt_version="new-p9")
    extra = _where(_of("prompt_version", "new-p9"), {kind: strength}, when.moment)
    told = _perhaps(random, ReportedDeploy(when.after(-1), "prompt", "new-p9", source))
    return Story("prompt", "new-p9", kind, extra, move, told)


def _new_schema(touches: Touches, node: str, when: When, random: Random) -> Story:
    name = f"{node.title()}Answer"
    move = _changed(touches, when.moment, schema=name, schema_version="2")
    extra = _where(_of("schema_version", "2"), {"schema_invalid": _strength(random)}, when.moment)
    told = _perhaps(random, ReportedDeploy(when.after(-1), "schema", f"{name} 2"))
    return Story("schema", f"{name} 2", "schema_invalid", extra, move, told)


def _of(name: str, value: str) -> Touches:
    return lambda place: getattr(place, name) == value


def _anywhere(_: Dimensions) -> bool:
    return True


def _perhaps(random: Random, told: ReportedDeploy) -> tuple[ReportedDeploy, ...]:
    return (told,) if random.random() < 0.6 else ()


STORIES: Mapping[str, Write] = {
    "outage": _outage,
    "outage ramp": _outage_ramp,
    "outage flapping": _outage_flapping,
    "outage, mixed kinds": _outage_mixed_kinds,
    "outage, one model": _outage,
    "surge, rate limits": _surge,
    "two providers": _two_providers,
    "model": _model,
    "model ramp": _model_ramp,
    "model, two kinds": _model_two_kinds,
    "rescued by retries": _rescued,
    "late clock": _late,
    "outcomes only": _outcomes_only,
    "new model": _new_model,
    "model removed": _model_removed,
    "prompt": _prompt,
    "canary prompt": _canary,
    "prompt in steps": _prompt_in_steps,
    "staging prompt": _staging_prompt,
    "schema at one node": _schema_one_node,
    "release": _release,
    "validator": _validator,
    "deploy before": _innocent_before,
    "deploy after": _innocent_after,
    "over": _over,
    "healthy": _healthy,
    "harmless release": _harmless_release,
}


def second_cases(seed: int, each: int) -> Iterator[SecondCase]:
    """Make so many cases of each story, each of another project at another time."""
    for kind in STORIES:
        for number in range(each):
            yield _visible_case(kind, seed * 1_000 + number)


def _visible_case(kind: str, seed: int) -> SecondCase:
    """Draw until there is something that could be seen."""
    for draw in range(MOST_DRAWS):
        case = _draw_case(kind, seed * MOST_DRAWS + draw)
        if kind in {"healthy", "harmless release", "model removed"}:
            return case
        if case.failures_beyond() >= LEAST_BEYOND and (case.truth.cause != OK or kind == "over"):
            return case
    raise ValueError(f"{kind} is never to be seen")


def _draw_case(kind: str, seed: int) -> SecondCase:
    random = Random(f"{kind} {seed}")  # noqa: S311 - a story, not a secret
    world = draw_world(random, single_models=kind == "outage, one model")
    if kind == "rescued by retries":
        world = replace(world, tries=4, stubborn=1.0)
    now = START + timedelta(minutes=random.uniform(0, 14 * 24 * 60))
    ages = AGES if kind != "over" else AGES[3:]
    oldest = (world.days - 0.5) * 24 * 60
    age = min(random.choice(ages) * random.uniform(0.9, 1.1), oldest)
    when = When(now - age * MINUTE, now)
    story = STORIES[kind](world, when, random)
    return SecondCase(kind, seed, world, story, when.moment, now)

"""Us or them: what an excess is put down to."""

from datetime import UTC, datetime, timedelta

import pytest

from bench.drawn_counts import detect
from bench.verdict import ask_quickly, incidents
from bench.verdict_cases import OK, Answer
from diagnostics.verdict.cause import Cause, Finding
from diagnostics.verdict.cells import CountCell, Dimensions
from diagnostics.verdict.findings import find_causes
from diagnostics.verdict.hypotheses import UNTIMED, FirstSeen, ReportedDeploy, Timing
from tests.incidents.scenarios import KINDS

HAIKU = Dimensions("anthropic", "haiku", "v5", "Plan", "3", "bot", "r1", "plan", "prod")
GPT = HAIKU._replace(provider="openai", model="gpt")


def cell(place: Dimensions, attempts: int, **failures: int) -> CountCell:
    return CountCell(place, attempts, failures)


def quiet(*places: Dimensions) -> list[CountCell]:
    """A week in which one call in a hundred was invalid."""
    return [cell(place, 2_000, schema_invalid=20) for place in places]


def find_cause(
    cells: list[CountCell], before: list[CountCell], timing: Timing = UNTIMED
) -> Finding:
    return find_causes(cells, before, timing)[0]


def found(cells: list[CountCell], *known: Dimensions) -> Finding:
    return find_cause(cells, quiet(*known))


def told(cells: list[CountCell], *known: Dimensions) -> tuple[Cause | None, str]:
    finding = found(cells, *known)
    return finding.cause, finding.value


OLDER = HAIKU._replace(prompt_version="v4")
NEWER = HAIKU._replace(prompt_version="v6")


def test_calls_without_an_answer_at_one_provider_are_its_outage() -> None:
    cells = [cell(HAIKU, 200, call_timeout=80), cell(GPT, 200, schema_invalid=2)]
    assert told(cells, HAIKU, GPT) == (Cause.PROVIDER_OUTAGE, "anthropic")


def test_one_silent_model_beside_a_good_one_of_its_provider_is_the_model() -> None:
    sonnet = HAIKU._replace(model="sonnet")
    cells = [cell(HAIKU, 200, call_timeout=80), cell(sonnet, 200), cell(GPT, 200)]
    assert told(cells, HAIKU, sonnet, GPT) == (Cause.MODEL, "anthropic/haiku")


@pytest.mark.parametrize("calls", [1, 3, 10])
def test_first_calls_of_a_new_sender_make_no_trouble_of_a_model_everybodys(calls: int) -> None:
    new = GPT._replace(provider="mistral", model="small", source="trial", node="try")
    cells = [cell(HAIKU, 72, schema_invalid=30), cell(GPT, 30), cell(new, calls, not_json=calls)]
    fired = [HAIKU.series]
    causes = find_causes(cells, quiet(HAIKU, GPT), UNTIMED, fired=fired)
    assert [(one.cause, one.value) for one in causes] == [(Cause.MODEL, "anthropic/haiku")]


def test_one_model_under_two_prompts_is_the_model() -> None:
    cells = [cell(HAIKU, 200, truncated=60), cell(OLDER, 200, truncated=50)]
    cells += [cell(GPT, 300, schema_invalid=3)]
    assert told(cells, HAIKU, OLDER, GPT) == (Cause.MODEL, "anthropic/haiku")


def test_a_new_prompt_at_two_models_is_the_prompt() -> None:
    gpt_newer = GPT._replace(prompt_version="v6")
    cells = [cell(NEWER, 200, not_json=60), cell(gpt_newer, 200, not_json=40)]
    cells += [cell(HAIKU, 200, schema_invalid=2), cell(GPT, 200, schema_invalid=2)]
    assert told(cells, HAIKU, GPT) == (Cause.PROMPT, "v6")


def test_a_new_prompt_at_one_model_is_the_prompt_when_the_model_is_well_without_it() -> None:
    cells = [cell(NEWER, 200, not_json=60), cell(HAIKU, 200, not_json=1)]
    assert told([*cells, cell(GPT, 200)], HAIKU, GPT) == (Cause.PROMPT, "v6")


def test_a_new_prompt_and_a_worse_model_that_cannot_be_told_apart_are_mixed() -> None:
    cells = [cell(NEWER, 200, not_json=60), cell(GPT, 200)]
    assert told(cells, HAIKU, GPT)[0] is Cause.MIXED


def test_a_prompt_that_was_there_before_is_not_to_blame() -> None:
    cells = [cell(HAIKU, 200, schema_invalid=60), cell(GPT, 200, schema_invalid=70)]
    assert told(cells, HAIKU, GPT)[0] is Cause.VALIDATOR


def test_a_new_release_of_one_source_is_the_release() -> None:
    new = [place._replace(release="r2") for place in (HAIKU, GPT)]
    ops = [place._replace(source="ops") for place in (HAIKU, GPT)]
    cells = [cell(place, 200, schema_invalid=50) for place in new]
    cells += [cell(place, 200, schema_invalid=2) for place in ops]
    assert told(cells, HAIKU, GPT, *ops) == (Cause.RELEASE, "bot r2")


def test_an_innocent_release_at_the_same_time_is_let_off() -> None:
    released, ops = HAIKU._replace(release="r2"), HAIKU._replace(source="ops")
    cells = [cell(released, 200, truncated=60), cell(ops, 200, truncated=60)]
    cells += [cell(GPT._replace(release="r2"), 200), cell(GPT, 200)]
    assert told(cells, HAIKU, ops, GPT) == (Cause.MODEL, "anthropic/haiku")


def test_more_calls_of_the_worst_model_are_no_degradation() -> None:
    before = [cell(HAIKU, 1_000, schema_invalid=200), cell(GPT, 1_000, schema_invalid=10)]
    cells = [cell(HAIKU, 500, schema_invalid=100), cell(GPT, 50)]
    assert find_cause(cells, before).cause is None


def test_few_calls_are_not_enough() -> None:
    assert told([cell(HAIKU, 19, not_json=19)], HAIKU)[0] is Cause.NOT_ENOUGH_DATA


def test_nothing_more_than_usual_is_no_finding() -> None:
    assert told([cell(HAIKU, 400, schema_invalid=5)], HAIKU)[0] is None


def test_shares_divide_the_excess_and_the_calls() -> None:
    cells = [cell(HAIKU, 100, truncated=40), cell(GPT, 300, schema_invalid=3)]
    [haiku, gpt] = [
        share for share in found(cells, HAIKU, GPT).shares if share.dimension == "model"
    ]
    assert haiku.value == "haiku"
    assert haiku.share > 0.95
    assert haiku.traffic_share == 0.25
    assert haiku.lift is not None
    assert haiku.lift > 3.8
    assert haiku.share + gpt.share == pytest.approx(1)


WITH_ENOUGH_CALLS = [one for one in incidents(5, 4) if one.incident.shape.runs_per_hour >= 60]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_incidents_from_a_seed_are_told_right_or_not_at_all(kind: str) -> None:
    drawn = [one for one in WITH_ENOUGH_CALLS if one.kind == kind]
    # What no detector fires for is told nowhere: a prompt in use at few of many calls.
    made = [one for one in drawn if one.truth.cause == OK or detect(one.incident.runs())]
    assert len(made) >= len(drawn) - 1
    judged = [Answer(0, kind, one.truth, ask_quickly(one)).outcome for one in made]
    assert judged.count("right") >= len(made) - 1
    assert "wrong" not in judged


def test_a_prompt_that_began_long_before_is_let_off_by_the_clock() -> None:
    low = datetime(2026, 11, 21, 14, tzinfo=UTC)
    early = FirstSeen(NEWER, low - timedelta(hours=2))
    timing = Timing(low, low + timedelta(minutes=20), [early])
    cells = [cell(NEWER, 200, not_json=60), cell(GPT, 200)]
    finding = find_cause(cells, quiet(HAIKU, GPT), timing)
    assert (finding.cause, finding.value) == (Cause.MODEL, "anthropic/haiku")


@pytest.mark.parametrize(
    ("of_the_day", "cause"), [(HAIKU, Cause.RELEASE), (None, Cause.MODEL)], ids=["back", "in use"]
)
def test_a_release_is_back_again_only_if_the_day_before_was_without_it(
    of_the_day: Dimensions | None, cause: Cause
) -> None:
    newer = HAIKU._replace(release="r2", prompt_version=None)
    before = [*quiet(HAIKU, GPT), cell(newer, 300, schema_invalid=3)]
    day = [cell(of_the_day or newer, 300, schema_invalid=3), cell(GPT, 300)]
    cells = [cell(newer, 200, not_json=60), cell(GPT, 200)]
    assert find_cause(cells, before, Timing(SHARP[0], SHARP[1], day=day)).cause is cause


def test_a_prompt_and_the_release_that_brought_it_are_the_prompt() -> None:
    new = [one._replace(release="r2", prompt_version="v6") for one in (HAIKU, GPT)]
    ops = [one._replace(source="ops") for one in (HAIKU, GPT)]
    cells = [*(cell(place, 200, not_json=50) for place in new), *(cell(o, 200) for o in ops)]
    assert told(cells, HAIKU, GPT, *ops) == (Cause.PROMPT, "v6")


def test_a_release_that_was_told_goes_before_the_prompt_that_came_with_it() -> None:
    new = [one._replace(release="r2", prompt_version="v6") for one in (HAIKU, GPT)]
    ops = [one._replace(source="ops") for one in (HAIKU, GPT)]
    at = datetime(2026, 11, 21, 14, tzinfo=UTC)
    timing = Timing(at, at, deploys=[ReportedDeploy(at, "release")])
    cells = [*(cell(place, 200, not_json=50) for place in new), *(cell(o, 200) for o in ops)]
    finding = find_cause(cells, quiet(HAIKU, GPT, *ops), timing)
    assert (finding.cause, finding.value) == (Cause.RELEASE, "bot r2")


def named(cells: list[CountCell], before: list[CountCell]) -> set[tuple[Cause | None, str]]:
    return {(one.cause, one.value) for one in find_causes(cells, before)}


def test_two_models_with_two_kinds_are_two_causes() -> None:
    sonnet = HAIKU._replace(model="sonnet")
    cells = [
        cell(HAIKU, 300, truncated=90),
        cell(GPT, 300, not_json=80),
        cell(sonnet, 300, schema_invalid=3),
    ]
    assert named(cells, quiet(HAIKU, GPT, sonnet)) == {
        (Cause.MODEL, "anthropic/haiku"),
        (Cause.MODEL, "openai/gpt"),
    }


def test_a_new_version_that_fails_in_another_way_but_less_is_no_cause() -> None:
    sonnet = HAIKU._replace(model="sonnet")
    older, newer = (GPT._replace(prompt_version=name) for name in ("g1", "g2"))
    before = [cell(older, 4_000, not_json=1_200), *quiet(HAIKU, sonnet)]
    cells = [
        cell(newer, 1_200, truncated=300),
        cell(HAIKU, 100, refusal=12),
        cell(sonnet, 100, multiple_objects=12),
    ]
    assert Cause.PROMPT not in {cause for cause, _ in named(cells, before)}


def test_one_node_whose_answers_all_models_fail_is_its_checks() -> None:
    steps = [one._replace(node="step", schema="Step") for one in (HAIKU, GPT)]
    cells = [cell(place, 200, schema_invalid=60) for place in (HAIKU, GPT)]
    cells += [cell(place, 200, schema_invalid=2) for place in steps]
    assert told(cells, HAIKU, GPT, *steps) == (Cause.VALIDATOR, "plan")


def test_more_calls_from_a_source_that_always_was_worse_are_no_degradation() -> None:
    hard = HAIKU._replace(source="hard")
    before = [cell(HAIKU, 2_000, not_json=20), cell(hard, 1_000, not_json=250)]
    cells = [cell(HAIKU, 100, not_json=1), cell(hard, 400, not_json=100)]
    assert find_cause(cells, before).cause is None


@pytest.mark.parametrize("own", [{"source": "hard", "release": "h1"}, {"node": "hard"}])
def test_what_always_failed_more_is_known_though_each_of_its_models_had_few_calls(
    own: dict[str, str],
) -> None:
    models = [GPT._replace(model=f"m{number}") for number in range(10)]
    hard = [place._replace(**own) for place in models]
    before = [cell(place, 150, not_json=2) for place in models]
    before += [cell(place, 5, not_json=1 + number % 2) for number, place in enumerate(hard)]
    cells = [cell(place, 20) for place in models] + [cell(place, 8, not_json=2) for place in hard]
    assert find_cause(cells, before).cause is None


def test_a_small_model_that_fails_is_seen_beside_a_large_one_that_does_better() -> None:
    before = [cell(HAIKU, 500), cell(GPT, 20_000, schema_invalid=3_000)]
    cells = [cell(HAIKU, 110, truncated=90)]
    cells += [cell(GPT, 4_000, schema_invalid=400, duplicate_key=40)]
    finding = find_cause(cells, before)
    assert (finding.cause, finding.value) == (Cause.MODEL, "anthropic/haiku")


def test_a_new_schema_is_to_blame_though_agents_tell_its_failures_differently() -> None:
    newer = [
        place._replace(schema_version="4", source=source)
        for place in (HAIKU, GPT)
        for source in ("bot", "web")
    ]
    kinds = ("truncated", "other_invalid", "truncated", "other_invalid")
    cells = [
        cell(place, 60, **{kind: bad})
        for place, kind, bad in zip(newer, kinds, (40, 12, 40, 12), strict=True)
    ]
    cells += [cell(HAIKU, 40), cell(GPT, 40)]
    webs = [place._replace(source="web") for place in (HAIKU, GPT)]
    finding = find_cause(cells, quiet(HAIKU, GPT, *webs))
    assert (finding.cause, finding.value) == (Cause.SCHEMA, "Plan 4")


def test_a_source_that_reports_ends_of_runs_only_does_not_clear_the_model() -> None:
    places = [
        place._replace(source=source, release=f"{source} 1")
        for place in (HAIKU, GPT, GPT._replace(model="mini"))
        for source in ("bot", "crm", "ends")
    ]
    before = [
        cell(place, 400, **{"other_invalid" if place.source == "ends" else "not_json": 4})
        for place in places
    ]
    cells = [cell(place, 60) for place in places if place.model != "haiku"]
    hit = zip(places, ({"truncated": 25}, {"truncated": 20}, {"other_invalid": 7}), strict=False)
    cells += [cell(place, 80, **failures) for place, failures in hit]
    causes = find_causes(cells, before)
    assert [(one.cause, one.value) for one in causes] == [(Cause.MODEL, "anthropic/haiku")]


def test_a_model_that_one_source_suddenly_calls_in_a_loop_is_not_said_to_be_at_fault() -> None:
    crm = [place._replace(source="crm", release="c1") for place in (HAIKU, GPT)]
    cells = [cell(HAIKU, 3), cell(GPT, 7), cell(crm[0], 70, not_json=60), cell(crm[1], 6)]
    before = [cell(place, 100 if place.model == "haiku" else 900) for place in (HAIKU, GPT, *crm)]
    finding = find_cause(cells, before)
    assert (finding.cause, finding.value) == (Cause.PAIR, "crm with anthropic/haiku")
    assert not finding.is_theirs


def test_a_release_whose_source_alone_grew_is_not_back_again() -> None:
    crm = [place._replace(source="crm", release="c1") for place in (HAIKU, GPT)]
    cells = [cell(HAIKU, 30), cell(GPT, 30), *(cell(place, 50, not_json=30) for place in crm)]
    before = [*quiet(HAIKU, GPT), *(cell(place, 40) for place in crm)]
    assert find_cause(cells, before).cause is Cause.SOURCE


def test_retries_of_failing_calls_are_no_loop_of_their_source() -> None:
    crm = [place._replace(source="crm", release="c1") for place in (HAIKU, GPT)]
    cells = [cell(HAIKU, 4, not_json=2), cell(GPT, 40), cell(crm[0], 60, not_json=40)]
    cells += [cell(crm[1], 40)]
    before = [cell(place, 250) for place in (HAIKU, GPT, *crm)]
    assert find_cause(cells, before).cause is Cause.MODEL


AT = datetime(2026, 11, 21, 14, 0, tzinfo=UTC)
SHARP = (AT, AT + timedelta(minutes=20))


@pytest.mark.parametrize(
    ("known", "begun", "cause"),
    [
        # All calls of the only model have it, and it began with the trouble.
        (SHARP, AT + timedelta(minutes=5), Cause.PROMPT),
        # When it began says little where the onset is known to half a day.
        ((AT, AT + timedelta(hours=12)), AT + timedelta(hours=3), Cause.MIXED),
    ],
)
def test_a_new_prompt_of_the_only_model_is_blamed_when_it_began_just_then(
    known: tuple[datetime, datetime], begun: datetime, cause: Cause
) -> None:
    timing = Timing(*known, [FirstSeen(NEWER, begun)])
    finding = find_cause([cell(NEWER, 200, not_json=60)], quiet(HAIKU), timing)
    assert finding.cause is cause


def test_a_new_release_under_which_other_models_are_well_is_named_with_the_one() -> None:
    haiku, gpt = (place._replace(release="r2") for place in (HAIKU, GPT))
    timing = Timing(*SHARP, [FirstSeen(haiku, AT + timedelta(minutes=5))])
    cells = [cell(haiku, 200, not_json=60), cell(gpt, 200, schema_invalid=2)]
    finding = find_cause(cells, quiet(HAIKU, GPT), timing)
    assert (finding.cause, finding.value) == (Cause.PAIR, "bot r2 with anthropic/haiku")


def test_a_model_that_fails_at_one_of_its_nodes_only_is_the_model() -> None:
    route, other = HAIKU._replace(node="route"), GPT._replace(node="route")
    cells = [cell(HAIKU, 4_000, schema_invalid=40), cell(GPT, 900, schema_invalid=9)]
    cells += [cell(route, 60, refusal=25), cell(other, 300, schema_invalid=3)]
    finding = find_cause(cells, quiet(HAIKU, GPT, route, other))
    assert (finding.cause, finding.value) == (Cause.MODEL, "anthropic/haiku")
    assert finding.touches(route)
    assert not finding.touches(HAIKU)


def test_a_validator_is_told_by_few_calls_of_other_models_too() -> None:
    cells = [cell(HAIKU, 500, unknown_tool=200), cell(GPT, 24, unknown_tool=9)]
    assert told(cells, HAIKU, GPT)[0] is Cause.VALIDATOR


def test_agents_that_do_not_tell_the_kind_do_not_hide_that_it_is_one() -> None:
    places = [p._replace(source=s) for p in (HAIKU, GPT) for s in ("bot", "web")]
    cells = [
        cell(place, 300, **{kind: 90})
        for place, kind in zip(places, ("not_json", "other_invalid") * 2, strict=True)
    ]
    assert told(cells, *places)[0] is Cause.VALIDATOR


MINI = HAIKU._replace(served="haiku-mini at gateway")
FULL = HAIKU._replace(served="haiku at anthropic")


@pytest.mark.parametrize(
    ("now", "before", "cause"),
    [
        # A gateway falls back: what it answers with fails, not the model that was asked for.
        ([cell(MINI, 200, not_json=60)], quiet(FULL), Cause.SERVED),
        # A part of the calls: the others go on well.
        ([cell(MINI, 200, not_json=60), cell(HAIKU, 200)], quiet(HAIKU), Cause.SERVED),
        # The agent only begins to tell what answers.
        ([cell(FULL, 200, not_json=60)], quiet(HAIKU), Cause.MODEL),
        # What answers is as it was.
        ([cell(FULL, 200, not_json=60)], quiet(FULL), Cause.MODEL),
    ],
)
def test_a_fallback_of_a_gateway_is_not_the_fault_of_the_model_that_was_asked_for(
    now: list[CountCell], before: list[CountCell], cause: Cause
) -> None:
    finding = find_cause([*now, cell(GPT, 200, schema_invalid=2)], [*before, *quiet(GPT)])
    assert finding.cause is cause


def test_a_model_and_a_source_that_fail_alike_are_not_the_checks_of_all_answers() -> None:
    models = [HAIKU, GPT, HAIKU._replace(provider="groq", model="llama")]
    known = [one._replace(source=source) for one in models for source in ("bot", "crm", "etl")]
    cells = [
        cell(place, 200, not_json=60 if place.model == "haiku" or place.source == "crm" else 1)
        for place in known
    ]
    assert named(cells, quiet(*known)) == {(Cause.MODEL, "anthropic/haiku"), (Cause.SOURCE, "crm")}


def test_a_new_prompt_that_fails_at_one_of_its_models_is_named_with_it() -> None:
    sonnet = NEWER._replace(model="sonnet")
    gpt = GPT._replace(prompt_version="v6")
    cells = [
        cell(NEWER, 90, not_json=26),
        cell(sonnet, 150, truncated=6),
        cell(gpt, 150, refusal=6),
    ]
    at = datetime(2026, 3, 12, 15, 0, tzinfo=UTC)
    timing = Timing(at - timedelta(hours=1), at, [FirstSeen(NEWER.versions, at)])
    finding = find_cause(cells, quiet(HAIKU, GPT, HAIKU._replace(model="sonnet")), timing)
    assert (finding.cause, finding.value) == (Cause.PAIR, "v6 with anthropic/haiku")

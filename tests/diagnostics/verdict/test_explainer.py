"""Which calls got worse: draws of a few worlds, and causes beside each other."""

import random
from collections.abc import Callable
from itertools import product

from bench.verdict_families.measures import judge
from bench.verdict_families.two_causes import make_two
from bench.verdict_families.worlds import binomial
from diagnostics.verdict.cause import Cause
from diagnostics.verdict.cells import CountCell, Dimensions
from diagnostics.verdict.counted import CellCounts
from diagnostics.verdict.explainer import posterior_of
from diagnostics.verdict.findings import find_causes

MODELS = (("acme", "one"), ("acme", "two"), ("zeta", "three"))
PLACES = [
    Dimensions(*model, f"{source}-v1", "Plan", "1", source, "r1", node, "prod")
    for model, source, node in product(MODELS, ("bot", "crm"), ("plan", "step"))
]
Hit = Callable[[Dimensions], bool]


def drawn(seed: int, hit: Hit, share: float) -> list[tuple[Cause | None, str]]:
    draw = random.Random(seed)
    rates = {place: draw.choice((0.01, 0.03, 0.06)) for place in PLACES}
    before = [counted(draw, place, 600, rates[place]) for place in PLACES]
    cells = [
        counted(draw, place, 50, rates[place] + (share if hit(place) else 0.0)) for place in PLACES
    ]
    return [(one.cause, one.value) for one in find_causes(cells, before)]


def counted(draw: random.Random, place: Dimensions, calls: int, rate: float) -> CountCell:
    return CountCell(place, calls, {"not_json": binomial(draw, calls, rate)})


def test_of_drawn_causes_that_are_named_nearly_all_are_right() -> None:
    truths: list[tuple[Hit, tuple[Cause, str]]] = [
        (lambda place: place.model == "one", (Cause.MODEL, "acme/one")),
        (lambda place: place.source == "crm", (Cause.SOURCE, "crm")),
        (lambda place: place.node == "step", (Cause.VALIDATOR, "step")),
    ]
    right = wrong = 0
    for seed, (hit, truth) in product(range(12), truths):
        for named in drawn(seed, hit, 0.15):
            right += named == truth
            wrong += named != truth and named[0] not in {Cause.MIXED, Cause.NOT_ENOUGH_DATA, None}
    assert wrong <= 1
    assert right >= 24


def test_where_nothing_got_worse_nothing_is_named() -> None:
    named = [drawn(seed, lambda _: False, 0.0) for seed in range(30)]
    assert all(cause in {None, Cause.NOT_ENOUGH_DATA} for found in named for cause, _ in found)


def test_what_differs_inside_a_cause_is_no_further_cause() -> None:
    """One node of a model is hit twice as hard as the other."""
    before = [CountCell(place, 1_000, {"not_json": 10}) for place in PLACES]
    failed = {"plan": 15, "step": 35}
    cells = [
        CountCell(place, 60, {"not_json": failed[place.node] if place.model == "one" else 1})
        for place in PLACES
    ]
    assert [(one.cause, one.value) for one in find_causes(cells, before)] == [
        (Cause.MODEL, "acme/one")
    ]


def test_one_cause_is_not_taken_apart_into_two_that_explain_it_no_better() -> None:
    """A retired model: some of its calls were cut off before they were refused."""
    before = [
        CountCell(place, 1_000, {"call_other": 2, "truncated": 4, "not_json": 3})
        for place in PLACES
    ]
    cells = [CountCell(place, 20, refused(place)) for place in PLACES]
    assert [(one.cause, one.value) for one in find_causes(cells, before)] == [
        (Cause.MODEL, "acme/one")
    ]


def refused(place: Dimensions) -> dict[str, int]:
    if place.model != "one":
        return {}
    return {"call_other": 17, "truncated": 3 if place.source == "bot" else 0}


def test_a_part_of_a_cause_that_fails_in_another_way_is_a_cause_beside_it() -> None:
    before = [CountCell(place, 1_000, {"truncated": 10, "call_timeout": 5}) for place in PLACES]
    cells = []
    for place in PLACES:
        is_new = place.source == "crm"
        failures = {"truncated": 12 * is_new, "call_timeout": 10 * (is_new and place[0] == "zeta")}
        cells.append(CountCell(place._replace(release="r2") if is_new else place, 30, failures))
    assert [(one.cause, one.value) for one in find_causes(cells, before)] == [
        (Cause.RELEASE, "crm r2"),
        (Cause.PAIR, "crm r2 with zeta"),
    ]


def test_parts_of_an_outage_that_are_hit_differently_are_no_causes_beside_it() -> None:
    """Beside a new prompt, one model of the provider fails much more than the others."""
    story = make_two("outage_and_prompt", 1, 2).draw("outage_and_prompt", 2)
    assert judge(story).outcome == "right"


def test_calls_without_an_answer_say_nothing_of_bad_answers() -> None:
    """In the outage nearly no call is answered; those that are break the schema as elsewhere."""
    before = [CountCell(place, 2_000, {"schema_invalid": 20}) for place in PLACES]
    cells = []
    for place in PLACES:
        silent = 38 if place.provider == "acme" else 0
        is_new = place.source == "crm"
        bad = (40 - silent) // 2 if is_new else 0
        failures = {"call_provider_error": silent, "schema_invalid": bad}
        used = place._replace(prompt_version="crm-v2") if is_new else place
        cells.append(CountCell(used, 40, failures))
    found = find_causes(cells, before)
    assert [(one.cause, one.value, one.top_kind) for one in found] == [
        (Cause.PROVIDER_OUTAGE, "acme", "call_provider_error"),
        (Cause.PROMPT, "crm-v2", "schema_invalid"),
    ]


def test_of_too_many_cells_the_cause_is_still_found() -> None:
    places = [
        place._replace(release=f"r{release}", credential=f"k{key}")
        for place in PLACES
        for release in range(13)
        for key in range(13)
    ]
    before = [CountCell(place, 60, {"not_json": 1}) for place in places]
    cells = [
        CountCell(place, 6, {"not_json": 3 if place.model == "one" else 0}) for place in places
    ]
    assert [(one.cause, one.value) for one in find_causes(cells, before)] == [
        (Cause.MODEL, "acme/one")
    ]


def test_the_worked_example_of_the_documentation_has_its_numbers() -> None:
    haiku = Dimensions("anthropic", "haiku", "v5", "Plan", "3", "bot", "r1", "plan", "prod")
    gpt = haiku._replace(provider="openai", model="gpt")
    places = [
        place._replace(source=source, prompt_version=prompt)
        for place in (haiku, gpt)
        for source, prompt in (("bot", "v5"), ("crm", "c2"))
    ]
    counts = [((2_000, 40), (120, 31)), ((1_000, 18), (60, 17))]
    counts += [((3_000, 45), (180, 4)), ((800, 20), (50, 2))]
    before, cells = (
        [
            CountCell(place, pair[part][0], {"not_json": pair[part][1]})
            for place, pair in zip(places, counts, strict=True)
        ]
        for part in (0, 1)
    )
    posterior = posterior_of(CellCounts.of(cells, before, noise=0.03))
    model, everything, *others = posterior.answers
    assert (round(model.probability, 3), round(everything.probability, 3)) == (0.994, 0.006)
    assert (round(model.gain, 1), round(everything.gain, 1)) == (50.8, 45.5)
    assert max(answer.probability for answer in others) < 1e-7

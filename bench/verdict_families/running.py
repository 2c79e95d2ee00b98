"""Draw the stories of families and judge them."""

from collections.abc import Iterator

from bench.verdict_families import two_causes
from bench.verdict_families.families import DEVELOPMENT, HELD_OUT, SIZES, make_stories
from bench.verdict_families.measures import Result, judge, report
from bench.verdict_families.two_causes import make_two
from bench.verdict_families.worlds import Drawn

HEALTHY_EACH = 50


def run_families(seed: int, each: int, *, held_out: bool, two: bool, misses: bool) -> Iterator[str]:
    """Yield what came of each story that is not right, if asked for, and the figures."""
    results: list[Result] = []
    for story in _stories_of_two(seed, each, held_out) if two else _stories(seed, each, held_out):
        result = judge(story)
        results.append(result)
        if misses and result.outcome != "right":
            yield _miss(result)
    yield from report(results)


def _stories(seed: int, each: int, held_out: bool) -> Iterator[Drawn]:
    for name in HELD_OUT if held_out else DEVELOPMENT:
        count = HEALTHY_EACH if SIZES[name].get("healthy") else each
        yield from make_stories([name], count, seed)


def _stories_of_two(seed: int, each: int, held_out: bool) -> Iterator[Drawn]:
    for name in two_causes.HELD_OUT if held_out else two_causes.DEVELOPED:
        for number in range(each):
            yield make_two(name, seed, number).draw(name, number)


def _miss(result: Result) -> str:
    story = result.story
    truths = [min(truth) for truth in story.truths]
    said = [(*card.name, round(card.finding.probability, 3)) for card in result.cards]
    excused = "" if result.is_possible else " (not to be told)"
    return f"{story.family} {story.seed} {result.outcome}: {truths} said {said}{excused}"

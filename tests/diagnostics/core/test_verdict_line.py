"""The first line of the Now page."""

from collections import Counter
from datetime import UTC, datetime, timedelta

from diagnostics.core.onset import Bucket
from diagnostics.core.series import Counts
from diagnostics.core.standing import Curve, Standing, Subject
from diagnostics.core.verdict_line import verdict_line
from diagnostics.core.wording import THIN

AT = datetime(2026, 11, 21, 14, 32, tzinfo=UTC)
COUNTS = Counts(80, 30, baseline_runs=1000, baseline_degraded=40)


def since(at: datetime, runs: int, degraded: int) -> Curve:
    """Two and a half calm hours, then trouble from a time on."""
    width = timedelta(minutes=15)
    calm, bad = [Bucket(30, 1)] * 10, [Bucket(runs, degraded)]
    return Curve(at - 10 * width, width, calm + bad)


def subject(
    name: str, runs: int, degraded: int, curve: Curve | None = None, kind: str = ""
) -> Subject:
    """A series with a baseline of 40 in 1,000."""
    counts = Counts(runs, degraded, baseline_runs=1000, baseline_degraded=40)
    kinds = Counter({kind: 9, "not_json": 1} if kind else {})
    return Subject(name, "next step in prod", counts, kinds, curve)


def headline(*subjects: Subject) -> str:
    return verdict_line(subjects, "24 h").headline.replace(THIN, " ")


def test_degrading_names_model_rate_n_baseline_and_kind() -> None:
    worst = subject("anthropic/claude-haiku-4", 412, 128, kind="truncated")
    assert headline(worst) == (
        "Degrading: anthropic/claude-haiku-4, 31 % of 412 runs "
        "(baseline 4.0 %), mostly truncated."
    )


def test_known_onset_gives_since_when_and_the_rate_since_then() -> None:
    worst = subject("p/m", 400, 40, since(AT, 100, 31))
    verdict = verdict_line([worst], "24 h")
    assert verdict.since == AT
    assert headline(worst).startswith("Degrading since 14:32: p/m, 31 % of 100 runs")


def test_recent_trouble_counts_even_if_the_whole_range_looks_calm() -> None:
    calm_day = subject("p/m", 400, 36, since(AT, 60, 20))
    assert calm_day.rates.state == "ok"
    assert calm_day.standing is Standing.DEGRADING


def test_series_of_one_model_speak_as_one() -> None:
    one = Subject("p/m", "plan in prod", COUNTS, curve=since(AT, 40, 10))
    two = Subject("p/m", "act in prod", COUNTS, curve=since(AT, 60, 21))
    verdict = verdict_line([one, two], "24 h")
    assert verdict.since == AT
    assert headline(one, two).endswith("p/m, 31 % of 100 runs (baseline 4.0 %).")
    assert verdict.beside == "Affected: plan in prod, act in prod."


def test_all_within_baseline_counts_models_not_series() -> None:
    same = [subject("p/a", 100, 4), subject("p/a", 100, 4), subject("p/b", 100, 3)]
    verdict = verdict_line(same, "24 h")
    assert verdict.headline == "All 2 models within baseline."
    assert verdict.tone == "good"


def test_single_model_is_named() -> None:
    assert headline(subject("p/a", 100, 4)) == "p/a is within baseline."


def test_few_runs_are_not_enough_data() -> None:
    verdict = verdict_line([subject("p/a", 12, 12)], "6 h")
    assert verdict.headline == (
        "Not enough data: 12 runs of the busiest series in the last 6 h."
    )
    assert "20 runs" in verdict.beside


def test_few_runs_never_speak_before_series_with_data() -> None:
    verdict = verdict_line([subject("p/a", 1, 1), subject("p/b", 100, 4)], "24 h")
    assert verdict.tone == "good"


def test_rate_above_the_bar_but_within_chance_is_to_be_watched() -> None:
    verdict = verdict_line([subject("p/a", 60, 7), subject("p/b", 100, 4)], "24 h")
    assert verdict.tone == "warn"
    assert "not yet beyond chance" in verdict.headline
    assert "1 series within baseline." in verdict.beside


def test_nothing_ran() -> None:
    assert headline() == "No run ended in the last 24 h."


def test_beside_names_the_other_bad_ones_and_counts_the_rest() -> None:
    bad = [subject(f"p/{n}", 100, 50) for n in range(6)]
    beside = verdict_line([*bad, subject("p/ok", 100, 4)], "24 h").beside
    assert "Also degrading: p/1 (next step in prod), p/2" in beside
    assert "and 2 more." in beside
    assert "1 series within baseline." in beside

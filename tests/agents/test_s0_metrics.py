"""S0-53 to S0-55: the two documented counters."""

from prometheus_client.parser import text_string_to_metric_families

from tests.agents.conftest import Api, Planner

LABELS = {"provider": "fake", "model": "fake-1"}


def read(api: Api, name: str) -> dict[tuple[tuple[str, str], ...], float]:
    """The samples of a metric by their labels."""
    families = text_string_to_metric_families(api.metrics())
    return {
        tuple(sorted(sample.labels.items())): sample.value
        for family in families
        for sample in family.samples
        if sample.name == name
    }


def value(api: Api, name: str) -> float:
    """The sample of the scripted model; nothing counted yet is 0."""
    return read(api, name).get(tuple(sorted(LABELS.items())), 0.0)


def test_s0_53_invalid_answers_are_counted(planner: Planner, api: Api) -> None:
    before = value(api, "pdca_next_step_parse_invalid_total")
    planner.run("no", "no")

    assert value(api, "pdca_next_step_parse_invalid_total") == before + 2


def test_s0_54_degraded_runs_are_counted(planner: Planner, api: Api) -> None:
    before = value(api, "pdca_next_step_degraded_total")
    planner.run("no", "no")

    assert value(api, "pdca_next_step_degraded_total") == before + 1


def test_s0_54_a_failed_provider_is_not_counted_as_a_parse_failure(
    planner: Planner, api: Api
) -> None:
    planner.run({"error": "refused"})

    assert value(api, "pdca_next_step_degraded_total") == 0


def test_s0_55_both_are_labelled_by_provider_and_model_and_nothing_else(
    planner: Planner, api: Api
) -> None:
    planner.run("no", "no")

    for name in ("pdca_next_step_parse_invalid_total", "pdca_next_step_degraded_total"):
        assert [{key for key, _ in labels} for labels in read(api, name)] == [set(LABELS)]

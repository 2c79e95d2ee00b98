"""Steps in layers, whatever their dependencies say."""

import re
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from diagnostics.web.charts.plan_graph import (
    BOX_HEIGHT,
    MOST_STEPS,
    GraphStep,
    assign_layers,
    plan_graph,
)


def step(step_id: str, *dependencies: str) -> GraphStep:
    return GraphStep(step_id, "", "echo", "ok", "good", dependencies)


def layers(*steps: GraphStep) -> dict[str, int]:
    return assign_layers({s.step_id: s.dependencies for s in steps})


def test_layer_is_the_longest_chain_before_a_step() -> None:
    assert layers(step("a"), step("b", "a"), step("c", "a", "b")) == {"a": 0, "b": 1, "c": 2}


def test_steps_may_be_declared_after_what_waits_for_them() -> None:
    assert layers(step("late", "early"), step("early")) == {"early": 0, "late": 1}


def test_cycle_is_cut_and_every_step_has_a_layer() -> None:
    found = layers(step("a", "b"), step("b", "a"), step("c", "b"))
    assert set(found) == {"a", "b", "c"}


def test_every_step_has_a_box_and_every_dependency_a_line() -> None:
    drawn = plan_graph([step("a"), step("b", "a"), step("c", "a", "b")])
    assert [box.step.step_id for box in drawn.boxes] == ["a", "b", "c"]
    lines = {(edge.source, edge.target) for edge in drawn.edges}
    assert lines == {("a", "b"), ("a", "c"), ("b", "c")}


def test_line_that_passes_a_layer_runs_beside_its_boxes() -> None:
    drawn = plan_graph([step("a"), step("b", "a"), step("c", "a", "b")])
    passing = next(edge for edge in drawn.edges if edge.target == "c")
    straight = {float(y) for y in re.findall(r"(\d+)H", passing.path)}
    middle = next(box for box in drawn.boxes if box.step.step_id == "b")
    assert straight
    assert all(y < middle.y or y > middle.y + BOX_HEIGHT for y in straight)


def test_unknown_self_and_double_dependencies_draw_no_line() -> None:
    drawn = plan_graph([step("a", "a", "nobody"), step("b", "a", "a")])
    assert [(edge.source, edge.target) for edge in drawn.edges] == [("a", "b")]


def test_long_names_are_cut_to_what_fits() -> None:
    box = plan_graph([step("s" * 300)]).boxes[0]
    assert len(box.first) < 20
    assert box.first.endswith("…")


def test_more_steps_than_can_be_drawn_are_counted() -> None:
    drawn = plan_graph([step(f"step_{n}") for n in range(MOST_STEPS + 7)])
    assert (len(drawn.boxes), drawn.left_out) == (MOST_STEPS, 7)


def test_text_lists_steps_states_and_dependencies() -> None:
    text = plan_graph([step("a"), step("b", "a")]).text
    assert text == "plan of 2 steps: a ok; b ok after a"


def test_no_steps_are_an_empty_drawing() -> None:
    drawn = plan_graph([])
    assert (drawn.boxes, drawn.edges) == ((), ())


names = st.sampled_from([f"s{n}" for n in range(8)])


@given(st.lists(st.tuples(names, st.lists(names, max_size=4)), max_size=12))
def test_any_dependencies_are_drawn_without_overlap(plan: Sequence[tuple[str, list[str]]]) -> None:
    drawn = plan_graph([step(name, *dependencies) for name, dependencies in plan])
    places = [(box.x, box.y) for box in drawn.boxes]
    for x, y in places:
        near = [b for a, b in places if a == x and abs(b - y) < BOX_HEIGHT]
        assert near == [y]
        assert 0 <= x < drawn.width
        assert 0 <= y < drawn.height

"""Whatever a valid plan holds can be stored, run, and read back."""

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from diagnostics.accounts.models import Project
from failsoft.plans.validation import validate_payload
from plans.models.run import Run
from plans.runs.records import check_results, results_of
from plans.runs.running import execute_run
from plans.runs.submission import submit_run

_text = st.text(st.characters() | st.sampled_from("\0\ud800$~/\u202e'\"\\"), max_size=20)
_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**300), 10**300)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _text
    | st.sampled_from(["$a.output", "$a.output.x", "$b.output.y.0", "$$a.output"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_text, inner, max_size=3),
    max_leaves=8,
)
_args = st.dictionaries(_text | st.sampled_from("xy"), _json, max_size=3)
_tools = st.sampled_from(["echo", "fail", "json_select", "template"]) | _text.filter(str.strip)
_steps = st.fixed_dictionaries(
    {"step_id": st.sampled_from("abc") | _text, "tool": _tools, "args": _args},
    optional={"title": _text, "dependencies": st.lists(st.sampled_from("abc"), max_size=2)},
)
_plans = st.lists(_steps, min_size=1, max_size=3, unique_by=lambda s: str(s["step_id"])).map(
    lambda steps: {"steps": steps}
)


@given(_plans.filter(lambda plan: not validate_payload(plan)))
@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.filter_too_much,
        HealthCheck.too_slow,
    ],
)
def test_any_valid_plan_runs_to_results_that_keep_the_contract(
    project: Project, plan: dict[str, Any]
) -> None:
    run = submit_run(project.pk, plan, None)
    execute_run(run.id)
    run = Run.objects.get(pk=run.id)
    assert run.state == "ended"
    assert len(results_of(run)) == len(plan["steps"]) + 1
    assert run.contract_violations == []
    assert check_results(run) == []

"""Our side of the executor's benchmark: one measure a process, printed as JSON.

python -m bench.executor_ours inline TOOL SHAPE STEPS | memory SHAPE STEPS
    | distributed STEPS | floor COMMITS | migrate
"""

import json
import sys
import time
import tracemalloc

from django.core.management import call_command
from django.db import connection
from pydantic import BaseModel

from bench.executor_plans import make_plan
from config.gc_tuning import freeze_loaded_objects
from diagnostics.accounts.models import Project
from plans.models.run import Run
from plans.runs.running import execute_run
from plans.runs.submission import submit_run
from plans.tools.registry import tool

_LONGEST_SECONDS = 300


class NoArgs(BaseModel):
    """Nothing."""


@tool("noop", NoArgs, description="Do nothing.")
def noop(args: NoArgs) -> dict[str, int]:
    """Do nothing, any number of times."""
    return {}


@tool("effect", NoArgs, description="", side_effects=True, idempotent=False)
def effect(args: NoArgs) -> dict[str, int]:
    """Stand for something that must not happen twice."""
    return {}


def run_inline(tool_name: str, shape: str, steps: int) -> dict[str, float]:
    """Execute a stored run; seconds of wall and of this process's CPU, without submitting."""
    project = _project()
    _run_once(project, make_plan(10, shape, tool_name))
    freeze_loaded_objects()
    run = submit_run(project.pk, make_plan(steps, shape, tool_name), None)
    begun, cpu = time.perf_counter(), time.process_time()
    execute_run(run.pk)
    taken = time.perf_counter() - begun, time.process_time() - cpu
    run.refresh_from_db()
    assert run.task_status == "COMPLETED", run.meta  # noqa: S101 - what is measured is true
    return {"seconds": taken[0], "cpu_seconds": taken[1]}


def measure_memory(shape: str, steps: int) -> dict[str, float]:
    """Execute a stored run; the most bytes of Python objects at a time, for each step."""
    project = _project()
    _run_once(project, make_plan(10, shape))
    run = submit_run(project.pk, make_plan(steps, shape), None)
    tracemalloc.start()
    execute_run(run.pk)
    return {"bytes": tracemalloc.get_traced_memory()[1] / steps}


def commit_rows(commits: int) -> dict[str, float]:
    """Change one narrow row after the other, each with a commit: what no runner can beat."""
    connection.ensure_connection()
    with connection.connection.cursor() as cursor:
        cursor.execute("CREATE TABLE IF NOT EXISTS bench_floor (id int PRIMARY KEY, n int)")
        cursor.execute("TRUNCATE bench_floor")
        cursor.execute("INSERT INTO bench_floor SELECT n, 0 FROM generate_series(1, 100) n")
        begun = time.perf_counter()
        for number in range(commits):
            update = "UPDATE bench_floor SET n = n + 1 WHERE id = %s"
            cursor.execute(update, (number % 100 + 1,), prepare=True)
        return {"seconds": time.perf_counter() - begun}


def run_distributed(steps: int) -> dict[str, float]:
    """Submit a wide run and wait until workers have ended it."""
    project = _project()
    for count in (10, steps):
        begun = time.perf_counter()
        plan = make_plan(count, "wide", "echo")
        run = submit_run(project.pk, plan, None, runner=Run.Runner.DISTRIBUTED)
        while run.meta is None:
            if time.perf_counter() - begun > _LONGEST_SECONDS:
                raise TimeoutError(f"{run.open_steps} steps are open")
            time.sleep(0.01)
            run.refresh_from_db(fields=["meta", "open_steps"])
        taken = time.perf_counter() - begun
    return {"seconds": taken}


def _project() -> Project:
    return Project.objects.get_or_create(slug="bench", defaults={"name": "Bench"})[0]


def _run_once(project: Project, plan: object) -> None:
    execute_run(submit_run(project.pk, plan, None).pk)


def main(words: list[str]) -> None:
    """Do what the words say and print what it took."""
    match words:
        case ["migrate"]:
            call_command("migrate", verbosity=0)
            found = {}
        case ["inline", tool_name, shape, steps]:
            found = run_inline(tool_name, shape, int(steps))
        case ["memory", shape, steps]:
            found = measure_memory(shape, int(steps))
        case ["floor", commits]:
            found = commit_rows(int(commits))
        case ["distributed", steps]:
            found = run_distributed(int(steps))
        case _:
            raise SystemExit(__doc__)
    print(json.dumps(found))  # noqa: T201 - read by the benchmark


if __name__ == "__main__":
    main(sys.argv[1:])

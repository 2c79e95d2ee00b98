"""`manage.py prepare_local`: prepare the product on a running database.

Migrations, static files, first-run setup, demo data and, once, the first goal.
"""

import json
import os
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand

from config.local.folder import FIRST_GOAL_FILE, TIMES_FILE
from config.packages import NAME
from diagnostics.store.models import Heartbeat

FIRST_GOAL = "Greet the new user and list three things worth trying first."


def collect_static() -> None:
    """Run collectstatic, if a static file or the library is newer than the last run."""
    manifest = Path(settings.STATIC_ROOT) / "staticfiles.json"
    if manifest.exists() and manifest.stat().st_mtime > _newest_source():
        return
    call_command("collectstatic", interactive=False, verbosity=0, clear=True)


def _newest_source() -> float:
    # Packages change only with an installation, which touches the stamp file.
    folders = [Path(folder) for folder in settings.STATICFILES_DIRS]
    files = [path for folder in folders for path in folder.rglob("*")]
    library = [path for path in (settings.BASE_DIR / NAME).rglob("*.*") if path.suffix != ".pyc"]
    settled = [settings.BASE_DIR / "pyproject.toml", Path(sys.prefix) / "failsoft-installed"]
    stamps = [*files, *library, *settled]
    return max((path.stat().st_mtime for path in stamps if path.exists()), default=0.0)


def load_demo(folder: Path) -> None:
    """Load the demo data once; removed data is not loaded again."""
    marker = folder / "demo-loaded"
    if not marker.exists():
        call_command("load_demo")
        marker.touch()


def submit_first_goal(folder: Path) -> None:
    """Submit one real goal on the very first start with a model."""
    target = folder / FIRST_GOAL_FILE
    if target.exists() or not settings.FAILSOFT_MODEL_URL:
        return
    output = StringIO()
    with redirect_stdout(output):
        # With a single harmless tool, even the smallest model finds a plan.
        call_command("submit_goal", FIRST_GOAL, "--json", "--tool", "echo")
    target.write_text(json.dumps(json.loads(output.getvalue())), encoding="utf-8")


def make_steps(folder: Path, *, demo: bool) -> dict[str, Callable[[], object]]:
    steps: dict[str, Callable[[], object]] = {
        "migrate": partial(call_command, "migrate", interactive=False),
        "static": collect_static,
        "first_run": partial(call_command, "first_run"),
        # Heartbeats of the last start do not count.
        "heartbeats": Heartbeat.objects.all().delete,
        "demo": lambda: load_demo(folder),
        "first_goal": lambda: submit_first_goal(folder),
    }
    if not demo:
        del steps["demo"]
    return steps


class Command(BaseCommand):
    help = "Prepare the one-machine stack; `make run` calls this."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--no-demo", action="store_true")

    def handle(self, *args: object, **options: object) -> None:
        os.umask(0o077)
        folder = Path(settings.FAILSOFT_DATA_DIR)
        times: dict[str, float] = {}
        steps = make_steps(folder, demo=not options["no_demo"])
        for number, (name, step) in enumerate(steps.items(), start=1):
            self.stdout.write(f"{name} (step {number} of {len(steps)})")
            begin = time.monotonic()
            step()
            times[name] = round(time.monotonic() - begin, 2)
        (folder / TIMES_FILE).write_text(json.dumps(times), encoding="utf-8")

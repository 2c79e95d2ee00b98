"""What a process has loaded is no garbage, and is not looked at again and again."""

import subprocess
import sys

import pytest

LOADED = "import gc, config.wsgi; print(gc.get_freeze_count(), len(gc.get_objects()))"
"""Objects that are set aside, and those that a collection goes through."""


@pytest.mark.slow
def test_a_web_process_sets_aside_every_view_before_its_first_request() -> None:
    command = [sys.executable, "-W", "ignore", "-c", LOADED]
    result = subprocess.run(command, check=True, capture_output=True, text=True)
    aside, looked_at = map(int, result.stdout.split())
    assert aside > 100_000
    assert looked_at < aside / 100

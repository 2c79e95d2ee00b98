"""Crafted arguments of commands end with one line and a status that is not 0."""

import os
import pty
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command

import manage
from diagnostics.accounts.models import ApiKey, AuditEntry, Project

ROOT = Path(__file__).resolve().parents[2]
LEVEL = "from django.conf import settings; print(settings.LOGGING['root']['level'])"
KEY = ("create_key", "--project", "p", "--scope", "read", "--name")
REFUSED = [
    # A key's name is what people know it by.
    (*KEY, ""),
    (*KEY, " \t"),
    (*KEY, "n" * 500),
    # Beyond what a date can hold, and before now.
    (*KEY, "k", "--days", "9" * 12),
    (*KEY, "k", "--days", "0"),
    ("create_key", "--project", "p" * 5000, "--scope", "read", "--name", "k"),
    ("create_admin", ""),
    ("create_admin", "a" * 400),
    ("create_admin", "a b\n"),
    ("create_admin", "ada", "--email", "no address"),
    # Who has no mail address is not meant by an empty one.
    ("unlock_sign_in", ""),
    ("unlock_sign_in", "nobody"),
    ("reset_password", ""),
    ("publish_contract", "/proc/nope/x"),
    ("publish_contract", "/dev/null"),
    ("publish_contract", "n" * 5000),
    ("verify_audit", "--head", "x"),
    ("verify_audit", "--head", f"{'9' * 40}:1:0"),
    ("purge", "--project", "nope", "--everything"),
    ("submit_goal", "hi", "--project", "nope"),
    ("discover_tools", "nope"),
    ("load_demo", "--project", ""),
]


@pytest.mark.django_db
@pytest.mark.parametrize("words", REFUSED, ids=lambda words: " ".join(words)[:60])
def test_crafted_arguments_are_refused_in_one_line(words: tuple[str, ...]) -> None:
    Project.objects.create(slug="p", name="P")
    users = get_user_model().objects
    users.create_superuser("admin", "")
    out = StringIO()
    with pytest.raises(CommandError) as refused:
        call_command(*words, stdout=out, stderr=StringIO())
    assert str(refused.value).strip()
    assert "\n" not in str(refused.value)
    assert refused.value.returncode != 0
    assert ApiKey.objects.count() == 0
    assert users.count() == 1
    assert not AuditEntry.objects.exists()


@pytest.mark.django_db
def test_an_audit_log_without_entries_is_said_to_be_empty() -> None:
    out = StringIO()
    call_command("verify_audit", stdout=out)
    assert out.getvalue() == "The audit log is empty.\n"


def test_an_argument_that_is_not_utf_8_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["manage.py", "create_admin", "a\udcff"])
    with pytest.raises(SystemExit, match="Argument 2 is not UTF-8"):
        manage.main()


def level_of(stderr: int, **settings: str) -> str:
    """Return the log level of a command whose stderr is this file."""
    kept = {k: v for k, v in os.environ.items() if k != "FAILSOFT_LOG_LEVEL"}
    told = subprocess.run(
        [sys.executable, "manage.py", "shell", "--no-imports", "-c", LEVEL],
        cwd=ROOT,
        env={**kept, **settings},
        stdout=subprocess.PIPE,
        stderr=stderr,
        check=True,
        timeout=120,
    )
    return told.stdout.decode().strip()


@pytest.mark.slow
def test_what_a_command_repeats_reaches_no_terminal_as_a_command_of_it() -> None:
    leader, terminal = pty.openpty()
    hostile = "\x1b[2J\x1b]0;owned\x07\x9b31m\rx\u202e"
    try:
        words = [sys.executable, "manage.py", hostile, "\x1b[8m"]
        subprocess.run(words, cwd=ROOT, stdout=terminal, stderr=terminal, check=False, timeout=120)
        shown = os.read(leader, 65_536).decode()
    finally:
        os.close(leader)
        os.close(terminal)
    assert "owned" in shown
    controls = ("\x1b[2J", "\x1b]", "\x07", "\x9b", "\rx", "\u202e")
    assert [control for control in controls if control in shown] == []


@pytest.mark.slow
def test_a_terminal_shows_no_log_lines_unless_a_level_is_set() -> None:
    leader, terminal = pty.openpty()
    try:
        assert level_of(terminal) == "WARNING"
        assert level_of(terminal, FAILSOFT_LOG_LEVEL="INFO") == "INFO"
    finally:
        os.close(leader)
        os.close(terminal)
    assert level_of(subprocess.DEVNULL) == "INFO"

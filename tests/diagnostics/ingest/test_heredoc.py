"""A copied command hands over what was sent, and never runs a part of it."""

import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diagnostics.ingest.views import as_heredoc

LINES = st.sampled_from(["END", "END_1", "echo broken", "$(id)", "`id`", "\\", "'", ""])


@given(st.lists(LINES | st.text("END_1\r\x85 ", max_size=8)).map("\n".join))
def test_no_line_of_the_text_ends_it(text: str) -> None:
    shown = as_heredoc(text)
    assert shown.end not in shown.text.split("\n")


def test_what_a_terminal_would_obey_is_taken_out() -> None:
    shown = as_heredoc('{"a": 1}\rEND\rid\r\n\x1b[201~\x03')
    assert shown == ('{"a": 1}\nEND\nid\n\ufffd[201~\ufffd', "END_1")


@pytest.mark.skipif(shutil.which("sh") is None, reason="needs a shell")
def test_a_shell_reads_it_as_it_is() -> None:
    text = 'a\nEND\necho "$HOME" `id` \\\nEND_1\n\'"'
    shown = as_heredoc(text)
    script = f"cat <<'{shown.end}'\n{shown.text}\n{shown.end}\n"
    done = subprocess.run(["/bin/sh"], input=script, capture_output=True, text=True, check=True)
    assert done.stdout == text + "\n"

"""Names as segments of addresses: whatever a provider calls itself comes back the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from diagnostics.web.model_links import read_segment, write_segment

# name, segment
WRITTEN = [
    ("claude-haiku-4.5", "claude-haiku-4.5"),
    ("meta/llama 3", "meta~2Fllama~203"),
    ("größe", "größe"),
    (None, "-"),
    ("-", "~2D"),
    ("", "~"),
    ("..", "~2E~2E"),
    ("~", "~7E"),
    ("a?b#c%2F", "a~3Fb~23c~252F"),
    ("\u202e", "~E2~80~AE"),
]


@pytest.mark.parametrize(("name", "segment"), WRITTEN)
def test_names_are_written_as_one_segment(name: str | None, segment: str) -> None:
    assert write_segment(name) == segment
    assert read_segment(segment) == name


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_every_name_comes_back(name: str) -> None:
    segment = write_segment(name)
    assert "/" not in segment
    assert segment not in {"", ".", ".."}
    assert read_segment(segment) == name


@pytest.mark.parametrize("segment", ["a b", "~2f", "~61", "~G0", "~C3", ".", "a~"])
def test_one_name_has_one_segment(segment: str) -> None:
    with pytest.raises(ValueError, match="not a name"):
        read_segment(segment)

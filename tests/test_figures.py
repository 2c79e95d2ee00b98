"""The limits that hold the layout."""

from pathlib import Path

import pytest

from tests import figures


@pytest.mark.slow
def test_every_figure_has_a_limit_and_keeps_it() -> None:
    assert figures.above_limits() == []


def test_a_figure_above_its_limit_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "figures", lambda: {"modules": 10**6, "bench lines": 0})
    [line] = figures.above_limits()
    assert line.startswith("modules: 1,000,000 (limit ")


@pytest.mark.parametrize(
    ("name", "is_old"),
    [
        ("look_at", True),
        ("_last_look", True),
        ("look_up", False),
        ("told_attempts", True),
        ("outlook", False),
        ("QuietHours", False),
        ("is_quiet", True),
    ],
)
def test_a_word_that_was_replaced_is_found_in_names(
    name: str, is_old: bool, tmp_path: Path
) -> None:
    path = tmp_path / "module.py"
    path.write_text(f"def {name}(): ...\n", encoding="utf-8")
    patterns = figures.settings()["old-words"]
    assert bool(figures.old_words({"module": path}, patterns)) is is_old

"""Files for editors and hooks call what there is, and nothing from the network."""

from pathlib import Path

import yaml

TOP = Path(__file__).resolve().parent.parent


def test_every_hook_is_local_and_calls_a_pinned_tool_or_make() -> None:
    pinned = (TOP / "requirements-dev.txt").read_text(encoding="utf-8")
    packages = {"lint-imports": "import-linter"}
    config = yaml.safe_load((TOP / ".pre-commit-config.yaml").read_text(encoding="utf-8"))
    for repo in config["repos"]:
        assert repo["repo"] == "local"
        for hook in repo["hooks"]:
            assert hook["language"] == "system"
            program = hook["entry"].split()[0]
            if program != "make":
                name = program.removeprefix(".venv/bin/")
                assert f"\n{packages.get(name, name)}==" in f"\n{pinned}"


def test_the_editor_is_told_the_line_length_of_the_formatter() -> None:
    text = (TOP / ".editorconfig").read_text(encoding="utf-8")
    assert "max_line_length = 100" in text
    assert "line-length = 100" in (TOP / "pyproject.toml").read_text(encoding="utf-8")

"""The guides for maintainers name what exists, and their blocks run."""

import ast
import re
import textwrap
from pathlib import Path

import pytest

from plans.tools import registry

TOP = Path(__file__).resolve().parent.parent
PAGES = TOP / "docs" / "architecture"
GUIDES = (PAGES / "guides.md").read_text(encoding="utf-8")
NAMING = GUIDES + (PAGES / "resources.md").read_text(encoding="utf-8")
PATH = re.compile(r"`((?:[\w.-]+/)+[\w.-]*)`")
NAMED = re.compile(r"`(\w+)`\s+in\s+`([\w/]+\.py)`")
BLOCK = re.compile(r"^ *```python\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
BLOCKS = [textwrap.dedent(text) for text in BLOCK.findall(GUIDES)]


def defined_in(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names |= {target.id for target in targets if isinstance(target, ast.Name)}
    return names


@pytest.mark.parametrize("path", sorted(set(PATH.findall(NAMING))))
def test_every_file_and_folder_exists(path: str) -> None:
    assert (TOP / path).exists()


@pytest.mark.parametrize(("name", "path"), sorted(set(NAMED.findall(NAMING))))
def test_every_name_is_defined_where_the_guide_says(name: str, path: str) -> None:
    assert name in defined_in(TOP / path)


@pytest.mark.parametrize("text", BLOCKS)
def test_every_block_runs(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_tools", registry.registered_tools())
    exec(compile(text, "guides.md", "exec"), {"__name__": "guides"})  # noqa: S102


def test_there_is_a_guide_for_each() -> None:
    for thing in ("a detector", "a page", "a channel", "a provider", "a tool"):
        assert f"\n## Add {thing}\n" in GUIDES
    assert len(BLOCKS) == 4

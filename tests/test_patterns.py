"""Regular expressions of the product mean the same in every supported Python."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

constants: Any = import_module("re._constants")
parser: Any = import_module("re._parser")
TOP = Path(__file__).resolve().parent.parent
APPS = ("agents", "config", "diagnostics", "failsoft", "plans")
# Read wrongly before Python 3.11.5.
UNSURE = {constants.POSSESSIVE_REPEAT, constants.ATOMIC_GROUP}
# Imports every module, and writes a line for each pattern compiled on the way.
IMPORT_ALL = """
import importlib, pkgutil, re._compiler as compiler, re._parser as parser, sys
from tests.test_patterns import APPS, TOP, is_unsure

parse, frame_of = parser.parse, sys._getframe

def recorded(source, *args):
    frame, tree = frame_of(1), parse(source, *args)
    while frame and not frame.f_code.co_filename.startswith(tuple(f"{TOP}/{app}/" for app in APPS)):
        frame = frame.f_back
    if frame and isinstance(source, str | bytes):
        print("unsure" if is_unsure(tree) else "plain", repr(source))
    return tree

parser.parse = recorded
import django
django.setup()
for app in APPS:
    for module in pkgutil.walk_packages([f"{TOP}/{app}"], f"{app}."):
        if not module.name.startswith("config.settings") and "__main__" not in module.name:
            importlib.import_module(module.name)
from failsoft.redaction.rules import load_rules
load_rules()
"""


def is_unsure(tree: Any) -> bool:
    """Whether a parsed pattern holds a possessive quantifier or an atomic group."""
    if isinstance(tree, list | tuple | parser.SubPattern):
        return any(map(is_unsure, tree))
    return isinstance(tree, constants._NamedIntConstant) and tree in UNSURE


def patterns_in(path: Path) -> Iterator[str | bytes]:
    """Yield what is written as the pattern of a call of `re`, `x` for what is filled in."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re.") and node.args:
            first = node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str | bytes):
                yield first.value
            if isinstance(first, ast.JoinedStr):
                parts = first.values
                yield "".join(str(p.value) if isinstance(p, ast.Constant) else "x" for p in parts)


@pytest.mark.parametrize(
    ("pattern", "unsure"),
    [
        ("a++", True), ("a*+b", True), ("(x|(?:a?+))", True), ("a{1,2}+", True), ("(?>a|ab)", True),
        ("(?!a++)", True), (rb"(?(1)a++|b)()", True), (r"a\++", False), ("[a++]+", False),
        ("a+?", False),
    ],
)  # fmt: skip
def test_a_possessive_quantifier_is_told_wherever_it_stands(
    pattern: str | bytes, unsure: bool
) -> None:
    assert is_unsure(parser.parse(pattern)) is unsure


@pytest.mark.slow
def test_no_pattern_compiled_at_import_is_possessive_or_atomic() -> None:
    done = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL], cwd=TOP, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    lines = done.stdout.splitlines()
    assert len(lines) > 200
    assert [line for line in lines if line.startswith("unsure")] == []


@pytest.mark.slow
def test_no_pattern_written_in_a_function_is_possessive_or_atomic() -> None:
    files = [path for app in APPS for path in (TOP / app).rglob("*.py")]
    patterns = [(path, pattern) for path in files for pattern in patterns_in(path)]
    assert len(patterns) > 100
    assert [item for item in patterns if is_unsure(parser.parse(item[1]))] == []

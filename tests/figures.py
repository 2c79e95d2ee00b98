"""Measure the layout: `make figures`. Lines, modules, importers, closures, names.

`[tool.figures]` in `pyproject.toml` has a limit for each figure; `--check` prints the figures above
theirs, and fails if there are any.
"""

import ast
import re
import sys
import tomllib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Set
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("failsoft", "diagnostics", "plans", "agents", "config")
# Entry points that nothing imports, or one file by design.
ASSEMBLY = {"admin", "apps", "metrics", "models", "settings", "tasks", "urls", "__main__"}
PATHS = {
    "POST events": "diagnostics.ingest.api.events",
    "Now": "diagnostics.console.now",
    "alert evaluation": "diagnostics.alerting.evaluator",
    "a goal": "agents.cycle.running",
}
Imports = Mapping[str, Set[str]]


def settings() -> dict[str, Any]:
    """Return the limits and the old words."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        found: dict[str, Any] = tomllib.load(file)["tool"]["figures"]
    return found


def modules() -> dict[str, Path]:
    """Return the modules of the product by name; migrations are left out."""
    paths = (path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
    return {_name(path): path for path in sorted(paths) if "migrations" not in path.parts}


def imports_of(known: Mapping[str, Path]) -> Imports:
    """Return which modules each module imports, wherever in the file."""
    return {name: set(_imported(path, name, known)) for name, path in known.items()}


def single_importers(imports: Imports) -> list[str]:
    """Return the modules that exactly one other imports; assembly and commands do not count."""
    importers: dict[str, set[str]] = defaultdict(set)
    for name, found in imports.items():
        for imported in found:
            importers[imported].add(name)
    return sorted(name for name, by in importers.items() if len(by) == 1 and not _assembles(*by))


def closure(name: str, imports: Imports) -> set[str]:
    """Return every module that an entry point imports, itself included."""
    reached, waiting = set(), [name]
    while waiting:
        if (current := waiting.pop()) not in reached:
            reached.add(current)
            waiting += imports[current]
    return reached


def repeated_classes(known: Mapping[str, Path]) -> dict[str, int]:
    """Return the class names that are defined more than once, with their counts."""
    names = Counter(
        node.name
        for name, path in known.items()
        if ".commands." not in name
        for node in _parse(path).body
        if isinstance(node, ast.ClassDef)
    )
    return {name: count for name, count in names.items() if count > 1}


def longest_function(known: Mapping[str, Path]) -> int:
    """Return the lines of the longest function, with its decorators and docstring."""
    return max(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for node in _definitions(known)
        if not isinstance(node, ast.ClassDef)
    )


def old_words(known: Mapping[str, Path], patterns: list[str]) -> list[str]:
    """Return the functions and classes whose names have a word that has been replaced."""
    old = re.compile("|".join(patterns), re.IGNORECASE)
    return sorted({node.name for node in _definitions(known) if old.search(node.name)})


def product_lines() -> dict[str, int]:
    """Return the lines of the product by sort of file."""
    places = [ROOT / package for package in PACKAGES]
    python = [path for place in places for path in place.rglob("*.py")]
    migrations = [path for path in python if "migrations" in path.parts]
    return {
        "Python": _lines(path for path in python if path not in set(migrations)),
        "migrations": _lines(migrations),
        "SQL": _lines(path for place in places for path in place.rglob("*.sql")),
        "TOML": _lines(path for place in places for path in place.rglob("*.toml")),
        "templates": _lines(path for path in (ROOT / "templates").rglob("*") if path.is_file()),
        "CSS and JS": _lines(
            path
            for path in (ROOT / "static").rglob("*")
            if path.suffix in {".css", ".js"} and "vendor" not in path.parts
        ),
    }


def figures() -> dict[str, int]:
    """Return every figure that has a limit, by its name."""
    known = modules()
    imports = imports_of(known)
    return {
        "product lines": sum(product_lines().values()),
        "bench lines": _lines([*(ROOT / "bench").rglob("*.py"), *(ROOT / "bench").rglob("*.toml")]),
        "modules": len(known),
        "with one importer": len(single_importers(imports)),
        **{f"closure of {name}": len(closure(at, imports)) for name, at in PATHS.items()},
        "lines of the longest file": max(_lines([path]) for path in known.values()),
        "lines of the longest function": longest_function(known),
        "class names used twice": len(repeated_classes(known)),
        "names with an old word": len(old_words(known, settings()["old-words"])),
    }


def above_limits() -> list[str]:
    """Return a line for each figure above its limit."""
    limits = settings()["limits"]
    return [
        f"{name}: {value:,} (limit {limits[name]:,})"
        for name, value in figures().items()
        if value > limits[name]
    ]


def main() -> int:
    """Print all figures beside their limits, or only what is above; 1 if anything is."""
    if "--check" in sys.argv:
        above = above_limits()
        sys.stdout.writelines(f"{line}\n" for line in above)
        return 1 if above else 0
    limits = settings()["limits"]
    for name, value in figures().items():
        sys.stdout.write(f"{name:32} {value:7,}  limit {limits[name]:7,}\n")
    for name, count in product_lines().items():
        sys.stdout.write(f"  lines of {name:21} {count:7,}\n")
    known = modules()
    if "--single" in sys.argv:
        sys.stdout.writelines(f"{name}\n" for name in single_importers(imports_of(known)))
    if "--words" in sys.argv:
        words = old_words(known, settings()["old-words"])
        sys.stdout.writelines(f"{name}\n" for name in words)
    return 0


@cache
def _parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _definitions(
    known: Mapping[str, Path],
) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    for path in known.values():
        nodes = ast.walk(_parse(path))
        yield from (node for node in nodes if isinstance(node, kinds))


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _assembles(name: str) -> bool:
    return name.rpartition(".")[2] in ASSEMBLY or ".commands." in name


def _imported(path: Path, name: str, known: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.walk(_parse(path)):
        found: list[str] = []
        if isinstance(node, ast.Import):
            found = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            inside = [f"{node.module}.{alias.name}" for alias in node.names]
            found = [full if full in known else node.module for full in inside]
        yield from (module for module in found if module in known and module != name)


def _lines(paths: Iterator[Path] | list[Path]) -> int:
    return sum(path.read_text(encoding="utf-8").count("\n") for path in paths)


if __name__ == "__main__":
    sys.exit(main())

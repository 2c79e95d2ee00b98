"""Measure the layout: `make figures`. Lines, modules, importers, closures, class names."""

import ast
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Set
from pathlib import Path

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
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef)
    )
    return {name: count for name, count in names.items() if count > 1}


def product_lines() -> dict[str, int]:
    """Return the lines of the product by sort of file."""
    places = [ROOT / package for package in PACKAGES]
    python = [path for place in places for path in place.rglob("*.py")]
    migrations = [path for path in python if "migrations" in path.parts]
    return {
        "Python": _lines(path for path in python if path not in set(migrations)),
        "migrations": _lines(migrations),
        "SQL": _lines(path for place in places for path in place.rglob("*.sql")),
        "templates": _lines(path for path in (ROOT / "templates").rglob("*") if path.is_file()),
        "CSS and JS": _lines(
            path
            for path in (ROOT / "static").rglob("*")
            if path.suffix in {".css", ".js"} and "vendor" not in path.parts
        ),
    }


def main() -> None:
    """Print all figures."""
    known = modules()
    imports = imports_of(known)
    lines = product_lines()
    single = single_importers(imports)
    rows = [
        ("product lines", f"{sum(lines.values()):,}"),
        *((f"  {name}", f"{count:,}") for name, count in lines.items()),
        ("modules", str(len(known))),
        ("with one importer", f"{len(single)} ({len(single) / len(known):.1%})"),
        *((f"closure of {name}", str(len(closure(at, imports)))) for name, at in PATHS.items()),
        ("class names used twice", ", ".join(sorted(repeated_classes(known))) or "none"),
    ]
    sys.stdout.writelines(f"{name:24} {value}\n" for name, value in rows)
    if "--single" in sys.argv:
        sys.stdout.writelines(f"{name}\n" for name in single)


def _name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def _assembles(name: str) -> bool:
    return name.rpartition(".")[2] in ASSEMBLY or ".commands." in name


def _imported(path: Path, name: str, known: Mapping[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
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
    main()

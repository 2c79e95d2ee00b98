"""Build the documentation site from docs/: `python docs/build.py FOLDER`, strict.

Run by the environment of requirements-docs.txt. The index is the navigation. Nothing is left
inline: the console's policy, under which pages are served, allows scripts and styles of files only.
"""

import hashlib
import os
import re
import shutil
import sys
import tempfile
from fcntl import LOCK_EX, flock
from pathlib import Path

from sphinx.application import Sphinx

TOP = Path(__file__).resolve().parent.parent
# Beside docs/, but pages of the site too.
ICON = "static/console/logo.svg"
PAGES = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
VERSION = re.search(r'VERSION = "(.+)"', (TOP / "failsoft/__init__.py").read_text("utf-8"))[1]
DOOR = re.compile(r"^## ([^\n]+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
LISTED = re.compile(r"^\| \[[^\]]+\]\((?:\.\./)?(.+?)\.md\)", re.MULTILINE)
INLINE = re.compile(r"<(script|style)>(.*?)</\1>", re.DOTALL)
# What the theme leaves to screen readers and keyboards to guess.
ACCESSIBLE = {
    ' style="display: none;"': " hidden",
    'role="heading">': 'role="heading" aria-level="2">',
    '<aside class="sidebar-drawer">': '<aside class="sidebar-drawer" aria-label="Pages">',
    '<aside class="toc-drawer': '<aside aria-label="This page" class="toc-drawer',
    "<pre>": '<pre tabindex="0">',
    '<th class="head"><p></p></th>': "<td></td>",
}
STYLE = re.compile(r' style="[^"]*"')
CONFIGURATION = {
    "project": "Failsoft",
    "html_title": f"Failsoft {VERSION}",
    "extensions": ["myst_parser"],
    "source_suffix": {".md": "markdown"},
    "exclude_patterns": ["examples/**.md"],
    "myst_heading_anchors": 4,
    # A diagram that GitHub draws is shown as its text here.
    "suppress_warnings": ["misc.highlighting_failure"],
    "html_theme": "furo",
    "html_favicon": "logo.svg",
    "html_copy_source": False,
    "html_show_sourcelink": False,
    "html_show_copyright": False,
    "html_use_index": False,
    "html_theme_options": {
        "light_css_variables": {"color-brand-primary": "#0f766e", "color-brand-content": "#0f766e"},
        "dark_css_variables": {"color-brand-primary": "#2dd4bf", "color-brand-content": "#2dd4bf"},
    },
}


def prepare_source(app: Sphinx, name: str, source: list[str]) -> None:
    """Point links into and out of docs/ to the pages of the site; make the index the navigation."""
    above = "../" * name.count("/")
    source[0] = source[0].replace(f"](../{above}", f"]({above}").replace("](docs/", "](")
    if name == "index":
        for title, text in DOOR.findall(source[0]):
            pages = "\n".join(LISTED.findall(text))
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{pages}\n```\n"


def move_inline(folder: Path) -> None:
    """Move scripts and styles out of the pages, into files named by their content."""
    for page in folder.rglob("*.html"):
        top = os.path.relpath(folder, page.parent)

        def link(found: re.Match[str], top: str = top) -> str:
            kind, text = found.groups()
            suffix = "js" if kind == "script" else "css"
            name = f"_static/{hashlib.sha256(text.encode()).hexdigest()[:12]}.{suffix}"
            (folder / name).write_text(text, encoding="utf-8")
            if kind == "script":
                return f'<script src="{top}/{name}"></script>'
            return f'<link rel="stylesheet" href="{top}/{name}">'

        text = INLINE.sub(link, page.read_text("utf-8"))
        for found, better in ACCESSIBLE.items():
            text = text.replace(found, better)
        page.write_text(STYLE.sub("", text), encoding="utf-8")


def build(target: Path) -> int:
    """Build the site into a folder, which it replaces; nothing is replaced after a warning."""
    with tempfile.TemporaryDirectory() as name:
        source, made = Path(name, "source"), Path(name, "site")
        shutil.copytree(TOP / "docs", source)
        shutil.copytree(TOP / "examples", source / "examples")
        for file in (*PAGES, ICON):
            shutil.copy(TOP / file, source)
        app = Sphinx(
            source,
            None,
            made,
            Path(name, "trees"),
            "dirhtml",
            CONFIGURATION,
            status=None,
            warningiserror=True,
            keep_going=True,
        )
        app.connect("source-read", prepare_source)
        app.build(force_all=True)
        if app.statuscode:
            return app.statuscode
        move_inline(made)
        (made / ".buildinfo").unlink()
        put(made, target)
    return 0


def put(made: Path, target: Path) -> None:
    """Move a copy into place: a server or another build may read the folder meanwhile."""
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".", dir=target.parent) as name:
        copied, old = Path(name, "new"), Path(name, "old")
        shutil.copytree(made, copied, copy_function=shutil.copyfile)
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            flock(folder, LOCK_EX)
            if target.exists():
                target.rename(old)
            copied.rename(target)
        finally:
            os.close(folder)


if __name__ == "__main__":
    sys.exit(build(Path(sys.argv[1])))

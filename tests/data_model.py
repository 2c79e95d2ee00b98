"""The picture of the data model from the models: `python -m tests.data_model` writes it anew."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import django
from django.apps import apps
from django.db.models import ForeignKey, Model, OneToOneField

DOCUMENT = Path(__file__).resolve().parent.parent / "docs" / "architecture" / "data-model.md"
BEGIN, END = "<!-- generated -->", "<!-- end of what is generated -->"
APPS = ("diagnostics", "plans", "agents")
# Nearly every row names them: the lines would hide all others.
LEFT_OUT = ("diagnostics.Project", "auth.User")


def parts() -> str:
    """Return the pictures and tables of all apps, as they stand in the document."""
    return "\n".join(line for app in APPS for line in _part(app))


def written(text: str) -> str:
    """Return the document with its generated part made anew."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n{parts()}\n{END}{tail}"


def _part(app: str) -> Iterator[str]:
    models = sorted(apps.get_app_config(app).get_models(), key=lambda model: model.__name__)
    yield from (f"\n## {app}\n", "```mermaid", "erDiagram")
    yield from (line for model in models for line in _lines(model))
    yield from ("```\n", "| row | table | what it is |", "|---|---|---|")
    for model in models:
        sentence = (model.__doc__ or "").partition("\n")[0].rstrip(".").replace("|", "\\|")
        yield f"| {model.__name__} | `{model._meta.db_table}` | {sentence} |"


def _lines(model: type[Model]) -> Iterator[str]:
    for field in model._meta.local_fields:
        if not isinstance(field, ForeignKey) or field.related_model._meta.label in LEFT_OUT:
            continue
        one = "|o" if field.null else "||"
        many = "o|" if isinstance(field, OneToOneField) else "o{"
        yield f"    {field.related_model.__name__} {one}--{many} {model.__name__} : {field.name}"


if __name__ == "__main__":
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    django.setup()
    DOCUMENT.write_text(written(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(f"{DOCUMENT}\n")

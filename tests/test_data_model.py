"""The picture of the data model shows the models as they are."""

from django.apps import apps

from tests.data_model import APPS, DOCUMENT, parts, written


def test_the_picture_is_that_of_the_models() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert text == written(text), "run `make data-model`"


def test_every_row_and_every_reference_is_drawn() -> None:
    drawn = parts()
    for app in APPS:
        for model in apps.get_app_config(app).get_models():
            assert f"| {model.__name__} | `{model._meta.db_table}` |" in drawn
    assert "Goal ||--o{ Attempt : goal" in drawn
    assert "Goal ||--o| ActionBatch : goal" in drawn
    assert "Run |o--o{ Goal : current_run" in drawn


def test_what_was_changed_by_hand_is_made_anew() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    changed = text.replace("    Run ||--o{ RunStep : run\n", "")
    assert changed != text
    assert written(changed) == text

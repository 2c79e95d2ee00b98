"""A project to work in, and plans to work with."""

from typing import Any

import pytest
from django.apps import apps


@pytest.fixture
def project(db: None) -> Any:
    # By name: this file is read before Django has its settings.
    model = apps.get_model("diagnostics", "Project")
    return model.objects.create(slug="plans", name="Plans")


@pytest.fixture
def chain() -> dict[str, Any]:
    """Three steps, each waiting for the one before."""
    return {
        "steps": [
            {"step_id": "step_1", "tool": {"name": "echo", "args": {"text": "hi"}}},
            {
                "step_id": "step_2",
                "dependencies": ["step_1"],
                "tool": {"name": "echo", "args": {"got": "$step_1.output.text"}},
            },
            {"step_id": "step_3", "dependencies": ["step_2"], "tool": "echo"},
        ]
    }

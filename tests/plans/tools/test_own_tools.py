"""An installation's own tools: a module `failsoft_tools` in any installed app."""

import sys
from pathlib import Path

import pytest
from django.conf import settings as current
from django.test import override_settings

from plans.tools import registry

_MODULE = """
from pydantic import BaseModel
from plans.tools.registry import tool

class NoArgs(BaseModel):
    pass

@tool("say_hello", NoArgs, description="Say hello.")
def say_hello(args: NoArgs) -> str:
    return "hello"
"""


def test_tools_of_an_installed_app_are_registered_at_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "our_own_app"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "failsoft_tools.py").write_text(_MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(registry, "_tools", registry.registered_tools())
    with override_settings(INSTALLED_APPS=[*current.INSTALLED_APPS, "our_own_app"]):
        assert registry.call_tool("say_hello", {}) == "hello"
    for name in ("our_own_app", "our_own_app.failsoft_tools"):
        sys.modules.pop(name, None)

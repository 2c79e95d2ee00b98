"""The configuration file: TOML, or JSON by its suffix."""

import json
from pathlib import Path
from tomllib import TOMLDecodeError, loads
from typing import Any


class FileError(Exception):
    """The file does not exist or is invalid; the message names it."""


def read_config_file(path: str | None) -> dict[str, Any]:
    """Return the content of the file; empty without a path. Raises FileError."""
    if not path:
        return {}
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
        content = json.loads(text) if file.suffix == ".json" else loads(text)
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}") from None
    except (TOMLDecodeError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise FileError(f"{path}: {error}") from None
    if not isinstance(content, dict):
        raise FileError(f"{path}: expected an object")
    return content

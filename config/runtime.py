"""The data folder and the runtime file of the running one-machine stack."""

import json
import os
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[1]
POINTER = CHECKOUT / ".local" / "data-dir"
RUNTIME_NAME = "runtime.json"


def data_folder() -> Path:
    """Return the data folder: FAILSOFT_DATA_DIR, the remembered one or `.local`."""
    configured = os.environ.get("FAILSOFT_DATA_DIR")
    if configured:
        return Path(configured).absolute()
    try:
        return Path(POINTER.read_text(encoding="utf-8").strip())
    except OSError:
        return CHECKOUT / ".local"


def remember_data_folder(folder: Path) -> None:
    """Store `folder`, as given by `--data`, for later commands."""
    POINTER.parent.mkdir(exist_ok=True)
    POINTER.write_text(f"{folder}\n", encoding="utf-8")


def read_runtime() -> dict[str, Any]:
    """Return the settings of the running stack, or only the data folder without one."""
    folder = data_folder()
    try:
        values = json.loads((folder / RUNTIME_NAME).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {"data_dir": str(folder)}
    return dict(values["settings"])


def write_runtime(folder: Path, pid: int, settings: dict[str, Any]) -> None:
    """Publish the settings of the running stack, readable by the owner only."""
    path = folder / f"{RUNTIME_NAME}.new"
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump({"pid": pid, "settings": settings}, file, indent=1)
    path.replace(folder / RUNTIME_NAME)


def remove_runtime(folder: Path) -> None:
    (folder / RUNTIME_NAME).unlink(missing_ok=True)

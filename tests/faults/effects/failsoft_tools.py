"""Tools whose effects can be counted from outside; FAULTS_FOLDER says where."""

import os
import signal
import time
from pathlib import Path

from pydantic import BaseModel

from failsoft.plans.execution import CallContext
from plans.tools.registry import tool


class EffectArgs(BaseModel):
    """What to note, and how long to take before and after."""

    name: str = ""
    before: float = 0.0
    after: float = 0.0


def _folder() -> Path:
    return Path(os.environ["FAULTS_FOLDER"])


def note(kind: str, text: str) -> None:
    """Append a line that survives the process."""
    line = os.open(_folder() / kind, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(line, f"{text}\n".encode())
    os.close(line)


@tool("keyed", EffectArgs, description="", side_effects=True, idempotent=True)
def keyed(args: EffectArgs, context: CallContext) -> str:
    """Have an effect once for each key, as a service that knows keys does."""
    note("calls", context.idempotency_key)
    time.sleep(args.before)
    try:
        (_folder() / "keys" / context.idempotency_key).touch(exist_ok=False)
    except FileExistsError:
        return args.name
    note("effects", args.name)
    time.sleep(args.after)
    return args.name


@tool("unkeyed", EffectArgs, description="", side_effects=True, idempotent=False)
def unkeyed(args: EffectArgs) -> str:
    """Have an effect each time, and take a while before telling."""
    time.sleep(args.before)
    note("effects", args.name)
    time.sleep(args.after)
    return args.name


@tool("suicide", EffectArgs, description="")
def suicide(args: EffectArgs) -> None:
    """Kill the process at once."""
    note("deaths", args.name)
    os.kill(os.getpid(), signal.SIGKILL)


@tool("patient", EffectArgs, description="", timeout_seconds=60)
def patient(args: EffectArgs, context: CallContext) -> str:
    """Wait, unless the run is cancelled."""
    note("effects", args.name)
    give_up_at = time.monotonic() + args.after
    while time.monotonic() < give_up_at:
        if context.is_cancelled():
            raise RuntimeError("gave up")
        time.sleep(0.05)
    return args.name

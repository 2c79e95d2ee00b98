"""Run a program that ends with its starter, and relay its output with a line limit.

Run as a file by `python -I -S`:
    stdio_guard.py STARTER_PID LONGEST_LINE PROGRAM ...

Its process group ends as a whole: when the starter dies, however that happens, when a
line is longer than LONGEST_LINE bytes, and when the program ends.
"""

import ctypes
import os
import signal
import subprocess
import sys
from typing import NoReturn

_PR_SET_PDEATHSIG = 1
_CHUNK = 65_536
_NOT_FOUND = 127


def main() -> None:
    starter, longest, program = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    signal.signal(signal.SIGTERM, lambda *_: end_group())
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != starter:
        end_group()
    try:
        child = subprocess.Popen(program, stdout=subprocess.PIPE)  # noqa: S603 - configured
    except OSError as error:
        sys.stderr.write(f"{program[0]}: {error.strerror}\n")
        sys.exit(_NOT_FOUND)
    pass_lines(child.stdout.fileno() if child.stdout else 0, longest)
    end_group()


def pass_lines(source: int, longest: int) -> None:
    """Copy the output of the program until it ends or a line is too long."""
    length = 0
    while chunk := os.read(source, _CHUNK):
        first, *others = chunk.split(b"\n")
        length = len(others[-1]) if others else length + len(first)
        if length > longest:
            sys.stderr.write(f"a line is longer than {longest} bytes\n")
            sys.stderr.flush()
            return
        write_all(chunk)


def write_all(chunk: bytes) -> None:
    """Write a whole chunk; a pipe may accept it in parts."""
    while chunk:
        chunk = chunk[os.write(1, chunk) :]


def end_group() -> NoReturn:
    """End this process group, this process included."""
    os.killpg(0, signal.SIGKILL)
    sys.exit(1)


if __name__ == "__main__":
    main()

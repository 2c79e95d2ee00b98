"""Start a program that cannot outlive its starter, and never as root.

Run as a file by `python -I -S`, it becomes the program by exec:
    launch.py [--end-with SIGNAL] [--plain-user WAY] [--own FOLDER]... -- PROGRAM ...

PostgreSQL refuses uid 0. As root (or as a uid without a name) `--plain-user` first tries a
user namespace in which this uid is `nobody`: files keep their owner. Where namespaces are
disabled it becomes `nobody` permanently, takes ownership of the `--own` folders, and keeps
one capability, to traverse folders such as /root that only root may enter.
"""

import argparse
import ctypes
import os
import pwd
import sys
from contextlib import suppress
from pathlib import Path

NOBODY = 65534
CLONE_NEWUSER = 0x10000000
PR_SET_PDEATHSIG, PR_SET_KEEPCAPS, PR_CAP_AMBIENT = 1, 8, 47
PR_CAP_AMBIENT_RAISE = 2
PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP = 28, 1 << 2
CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH = 1, 2
CAPABILITY_VERSION_3 = 0x20080522


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Sets(ctypes.Structure):
    _fields_ = (
        ("effective", ctypes.c_uint32),
        ("permitted", ctypes.c_uint32),
        ("inheritable", ctypes.c_uint32),
    )


_libc = ctypes.CDLL(None, use_errno=True)


def _call(name: str, *arguments: object) -> None:
    if getattr(_libc, name)(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


def end_with_starter(signal_number: int) -> None:
    """Register a signal that the kernel sends to this process when its starter dies (Linux)."""
    if sys.platform != "linux":
        return
    starter = os.getppid()
    _call("prctl", PR_SET_PDEATHSIG, signal_number, 0, 0, 0)
    if os.getppid() != starter:
        sys.exit(1)


def needs_plain_user() -> bool:
    """Whether PostgreSQL refuses this uid: root, or a uid without a name."""
    if os.geteuid() == 0:
        return True
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        return True
    return False


def _change_owner(folders: list[Path], uid: int, gid: int) -> None:
    for folder in folders:
        if folder.stat().st_uid == uid:
            continue
        for path in (folder, *folder.rglob("*")):
            os.chown(path, uid, gid, follow_symlinks=False)


def drop_identity(folders: list[Path]) -> None:
    """Become `nobody` permanently, with one capability: to enter closed folders."""
    _change_owner(folders, NOBODY, NOBODY)
    status = Path("/proc/self/status").read_text(encoding="ascii")
    line = next(line for line in status.splitlines() if line.startswith("CapPrm:"))
    permitted = int(line.split()[1], 16)
    candidates = (CAP_DAC_READ_SEARCH, CAP_DAC_OVERRIDE)
    capability = next((bit for bit in candidates if permitted >> bit & 1), None)
    # PostgreSQL calls access(2) for its own program, and access(2) considers capabilities
    # of an ordinary user only with this bit; all of them are then set explicitly below.
    with suppress(OSError):
        _call("prctl", PR_SET_SECUREBITS, SECBIT_NO_SETUID_FIXUP, 0, 0, 0)
    _call("prctl", PR_SET_KEEPCAPS, 1, 0, 0, 0)
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)
    bits = 0 if capability is None else 1 << capability
    sets = (_Sets * 2)(_Sets(bits, bits, bits), _Sets(0, 0, 0))
    header = _Header(CAPABILITY_VERSION_3, 0)
    _call("capset", ctypes.byref(header), ctypes.byref(sets))
    if capability is not None:
        _call("prctl", PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0)


def become_plain_user(way: str, folders: list[Path]) -> None:
    """Leave uid 0 by the given method; `auto` prefers the namespace."""
    if way != "identity":
        try:
            # `nobody` inside a user namespace only; outside, the uid is unchanged.
            uid, gid = os.geteuid(), os.getegid()
            if uid == 0:
                _change_owner(folders, uid, gid)
            _call("unshare", CLONE_NEWUSER)
            Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
            Path("/proc/self/uid_map").write_text(f"{NOBODY} {uid} 1", encoding="ascii")
            Path("/proc/self/gid_map").write_text(f"{NOBODY} {gid} 1", encoding="ascii")
        except OSError:
            if way == "namespace" or os.geteuid() != 0:
                raise
        else:
            return
    drop_identity(folders)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--end-with", type=int, default=0)
    parser.add_argument("--plain-user", choices=("auto", "namespace", "identity"))
    parser.add_argument("--own", type=Path, action="append", default=[])
    parser.add_argument("program", nargs="+")
    options = parser.parse_args()
    if options.plain_user and needs_plain_user():
        become_plain_user(options.plain_user, options.own)
    if options.end_with:  # after the change of user, which clears it
        end_with_starter(options.end_with)
    os.execv(options.program[0], options.program)  # noqa: S606 - the purpose of the launcher


if __name__ == "__main__":
    main()

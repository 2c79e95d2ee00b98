"""What is vendored is what its authors published."""

import hashlib
from pathlib import Path

VENDORED = Path(__file__).parent.parent / "static" / "vendor"


def test_vendored_files_have_the_written_checksums() -> None:
    lists = sorted(VENDORED.glob("*/SHA256SUMS"))
    assert lists
    for listed in lists:
        lines = [line.split() for line in listed.read_text().splitlines()]
        told = {name.lstrip("*"): digest for digest, name in lines}
        files = {path.name: path for path in listed.parent.glob("*.min.*")}
        assert set(files) == set(told)
        for name, path in files.items():
            assert hashlib.sha256(path.read_bytes()).hexdigest() == told[name]


def test_vendored_files_keep_their_licence() -> None:
    for folder in VENDORED.iterdir():
        assert (folder / "LICENSE").read_text().strip()

"""`make check`: the static checks, two at a time; all of them run, any failure fails."""

import base64
import os
import secrets
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
DEPLOYMENT = ROOT / "docs" / "deployment"
COMPOSE = ("--builtin-schema", "vendor.compose-spec", str(DEPLOYMENT / "compose.yaml"))
SOURCES = ["agents", "bench", "config", "diagnostics", "failsoft", "manage.py", "plans", "tests"]


def production_env() -> dict[str, str]:
    """Return the settings of a server, with keys made on the spot."""
    return {
        "DATABASE_URL": "postgresql://failsoft@127.0.0.1/failsoft",
        "BROKER_URL": "amqp://127.0.0.1",
        "FAILSOFT_SECRET_KEY": secrets.token_urlsafe(50),
        "FAILSOFT_WORKING_KEY": base64.b64encode(secrets.token_bytes(32)).decode(),
        "FAILSOFT_BASE_URL": "https://failsoft.internal",
        "FAILSOFT_EMAIL_URL": "smtp+tls://mail.internal:587",
        "FAILSOFT_TRUSTED_PROXIES": "1",
    }


def manifests() -> list[str]:
    """Return the manifests for Kubernetes."""
    return sorted(str(path) for path in (DEPLOYMENT / "kubernetes").glob("*.yaml"))


def templates() -> list[str]:
    """Return our own templates."""
    found = [*ROOT.glob("templates/**/*.html"), *ROOT.glob("*/templates/**/*.html")]
    return sorted(str(path.relative_to(ROOT)) for path in found)


def commands() -> list[tuple[str, list[str]]]:
    """Return each check's name and command."""
    manage = [sys.executable, "-W", "ignore::RuntimeWarning", "manage.py"]
    checks = [
        # The longest first: the others run beside it.
        ("mypy", [str(BIN / "mypy"), "--no-error-summary", *SOURCES]),
        ("ruff", [str(BIN / "ruff"), "check"]),
        ("format", [str(BIN / "ruff"), "format", "--check", "--quiet"]),
        ("imports", [str(BIN / "lint-imports")]),
        ("figures", [sys.executable, "-m", "tests.figures", "--check"]),
        ("migrations", [*manage, "makemigrations", "--check", "--dry-run"]),
        ("deploy", [*manage, "check", "--deploy", "--fail-level", "WARNING"]),
        ("site", ["make", "--no-print-directory", "site"]),
        ("compose", [str(BIN / "check-jsonschema"), *COMPOSE]),
        ("kubernetes", [str(BIN / "kubernetes-validate"), "--strict", "--quiet", *manifests()]),
        # Broken examples of plans and results block a merge (S2-42).
        ("payload", [*manage, "verify_contract", "--payload", "examples/plan.json"]),
        ("results", [*manage, "verify_contract", "--results", "examples/results.json"]),
    ]
    if files := templates():
        djade = [str(BIN / "djade"), "--check", "--target-version", "5.2", *files]
        checks.append(("djade", djade))
        checks.append(("djlint", [str(BIN / "djlint"), "--lint", "--quiet", *files]))
    return checks


def run(name: str, command: list[str]) -> bool:
    """Run a check; print when it begins, and its result with what it wrote."""
    say(f"{name}: running")
    env = {**os.environ, **production_env()}
    begin = time.monotonic()
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    result = "FAILED" if done.returncode else "ok"
    output = done.stdout + done.stderr if done.returncode else ""
    say(f"{name}: {result} ({time.monotonic() - begin:.1f} s)\n{output}".rstrip())
    return done.returncode == 0


def say(text: str) -> None:
    """Print a line at once, also into a pipe."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    """Run every check; 1 when one of them failed."""
    with ThreadPoolExecutor(2) as pool:
        passed = list(pool.map(run, *zip(*commands(), strict=True)))
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())

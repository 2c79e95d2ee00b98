"""A web server with a project in it, and a person who is signed in."""

import os
import secrets
from base64 import b64encode
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from django.conf import settings
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client, override_settings
from django.urls import reverse

from bench.database import running_database
from bench.servers import free_port, start_web
from config.local.parts import web_arguments
from diagnostics.accounts.models import Membership, Project

NAME = "bench"
# Without the manifest that only a collected folder has.
PLAIN = {
    **settings.STORAGES,
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}


@dataclass(frozen=True, slots=True)
class Served:
    """Where the server listens, the project, and a client that is signed in to it."""

    port: int
    project: Project
    client: Client

    @property
    def cookie(self) -> tuple[str, str]:
        """The name and the value of the session's cookie."""
        name = settings.SESSION_COOKIE_NAME
        return name, self.client.cookies[name].value


@contextmanager
def serving(
    fill: Callable[[Project, str], object], folder: Path | None, *, is_kept: bool
) -> Iterator[Served]:
    """Start PostgreSQL, fill a project, and start the web server as `make run` does.

    `fill` is given the project and the address of the database; one that is kept is filled
    once.
    """
    with ExitStack() as stack:
        # Without MFA, which the administrator here has none of: Settings are pages, too.
        stack.enter_context(override_settings(STORAGES=PLAIN, FAILSOFT_REQUIRE_MFA=False))
        url = stack.enter_context(running_database(folder, is_kept=is_kept))
        project, is_new = Project.objects.get_or_create(slug=NAME, name="Bench")
        if is_new:
            fill(project, url)
        client = Client(SERVER_NAME="127.0.0.1")
        client.force_login(_administrator(project))
        client.post(reverse("dismiss_notice"))
        home = Path(stack.enter_context(TemporaryDirectory()))
        with override_settings(STATIC_ROOT=home / "static"):
            call_command("collectstatic", verbosity=0, interactive=False)
        os.environ |= _environment(url, home)
        port = free_port()
        start_web(port, web_arguments(port), stack)
        yield Served(port, project, client)


def _administrator(project: Project) -> User:
    user, _ = User.objects.get_or_create(username="ada")
    role = Membership.Role.ADMIN
    Membership.objects.get_or_create(project=project, user=user, role=role)
    return user


def _environment(url: str, home: Path) -> dict[str, str]:
    return {
        "DATABASE_URL": url,
        "BROKER_URL": "memory://",
        "FAILSOFT_DATA_DIR": str(home),
        "FAILSOFT_REQUIRE_MFA": "false",
        "FAILSOFT_SECRET_KEY": settings.SECRET_KEY,
        "FAILSOFT_WORKING_KEY": b64encode(secrets.token_bytes(32)).decode(),
        "FAILSOFT_STATIC_HASHED": "false",
    }

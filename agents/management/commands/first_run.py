"""`manage.py first_run`: set up an installation on one machine; safe to repeat."""

import os
import secrets
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand
from django.db import transaction

from agents.llm.models import LanguageModel, Provider
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.models import ApiKey, Membership, Project
from diagnostics.accounts.projects import (
    LOCAL_KEY_FILE,
    LOCAL_KEY_NAME,
    ensure_default_project,
    issue_key,
)
from diagnostics.store.partitions import ensure_partitions
from failsoft.retry.prompts import PROMPT_VERSION

ADMIN = "admin"
PASSWORD_FILE = "admin-password"  # noqa: S105 - the name of a file
PROVIDER = "local"
MODEL = "SmolLM2-135M"
MODEL_KEY = "env:FAILSOFT_MODEL_KEY"
OWNER_ONLY = 0o600


class Command(BaseCommand):
    """Create the default project, its administrator, a local key and the embedded model."""

    help = "Set up a new installation on one machine; existing data is not changed."

    def handle(self, *args: object, **options: Any) -> None:
        folder = Path(settings.FAILSOFT_DATA_DIR)
        ensure_partitions()
        with transaction.atomic():
            project = ensure_default_project()
            _ensure_admin(project, folder / PASSWORD_FILE)
            local_key = folder / LOCAL_KEY_FILE
            stored = ApiKey.objects.filter(project=project, name=LOCAL_KEY_NAME)
            if not (local_key.exists() and stored.exists()):
                key = issue_key(project, LOCAL_KEY_NAME, list(Scope))
                _write_private(local_key, key.text)
            if settings.FAILSOFT_MODEL_URL:
                _ensure_model(project)


def _ensure_admin(project: Project, target: Path) -> None:
    users = get_user_model()
    if users.objects.filter(is_superuser=True).exists():
        return
    password = secrets.token_urlsafe(18)
    user = users.objects.create_superuser(ADMIN, "", password)
    Membership.objects.create(project=project, user=user, role=Membership.Role.ADMIN)
    _write_private(target, password)


def _ensure_model(project: Project) -> None:
    """Create the embedded model: text mode first, schema mode on the last attempt."""
    provider, _ = Provider.objects.get_or_create(
        project=project, name=PROVIDER, defaults={"adapter": Provider.Adapter.OPENAI}
    )
    # The port is different at every start.
    Provider.objects.filter(pk=provider.pk).update(
        base_url=f"{settings.FAILSOFT_MODEL_URL}/v1",
        credential=MODEL_KEY if settings.FAILSOFT_MODEL_KEY else "",
    )
    modes = LanguageModel.OutputMode
    LanguageModel.objects.get_or_create(
        project=project,
        provider=provider,
        name=MODEL,
        defaults={
            "is_default": not LanguageModel.objects.filter(
                project=project, is_default=True
            ).exists(),
            "output_mode": modes.TEXT,
            "last_output_mode": modes.SCHEMA,
            "supported_output_modes": [modes.TEXT, modes.JSON, modes.SCHEMA],
            # Free text of this size is a loop in nine cases of ten; after a cut answer the limit
            # is doubled, which is enough for three steps.
            "max_output_tokens": 192,
            "temperature": 0.2,
            # An answer takes seconds on two idle cores; a busy machine makes three tokens a second.
            "attempt_timeout_seconds": 120,
            "prompt_version": PROMPT_VERSION,
        },
    )


def _write_private(target: Path, text: str) -> None:
    descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, OWNER_ONLY)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        os.fchmod(descriptor, OWNER_ONLY)
        file.write(f"{text}\n")

"""Print the path of every page of the console that opens, for an administrator.

Runs by itself, on the database of DATABASE_URL: `python -m tests.upgrade.open_pages`.
"""

import django
from django.contrib.auth import get_user_model
from django.test import Client


def main() -> None:
    django.setup()
    # Models load only now.
    from diagnostics.accounts.models import Project  # noqa: PLC0415
    from tests.console_pages import console_pages  # noqa: PLC0415

    client = Client()
    client.force_login(get_user_model()._default_manager.get(username="admin"))
    for path in console_pages(client, Project.objects.get(slug="default")):
        print(path)  # noqa: T201


if __name__ == "__main__":
    main()

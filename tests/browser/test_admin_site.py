"""The administration: every list, form and question of every table, as axe reads them."""

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client

from agents.demo.loading import load
from diagnostics import clock
from diagnostics.accounts.models import Project
from tests.browser.conftest import Open
from tests.security.addresses import all_addresses

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
# They lead elsewhere, act, or answer scripts.
NO_PAGES = {"login", "logout", "jsi18n", "autocomplete", "view_on_site", ""}
FORBIDDEN = 403


def admin_pages(client: Client) -> list[str]:
    """Give the paths of all pages that an administrator may open, from the resolver."""
    models = {
        f"{model._meta.app_label}_{model._meta.model_name}": model for model in admin.site._registry
    }
    asked = []
    for address in all_addresses():
        if not address.route.startswith("admin/") or address.name in NO_PAGES:
            continue
        table = models.get(address.name.rpartition("_")[0].removesuffix("_password"))
        row = table._default_manager.order_by("pk").first() if table and address.names else None
        if row or not address.names:
            asked.append(address.path(**dict.fromkeys(address.names, str(row and row.pk))))
    return [path for path in asked if client.get(path).status_code != FORBIDDEN]


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (390, "dark")])
def test_no_page_of_the_administration_has_an_axe_violation(
    project: Project, person: User, open_reader: Open, width: int, scheme: str
) -> None:
    User.objects.filter(pk=person.pk).update(is_staff=True, is_superuser=True)
    load(project, clock.now(), volume=0.02)
    client = Client()
    client.force_login(person)
    paths = admin_pages(client)
    lists = {f"/admin/{m._meta.app_label}/{m._meta.model_name}/" for m in admin.site._registry}
    assert lists <= set(paths)
    reader = open_reader(width, color_scheme=scheme)
    reader.sign_in()
    found = {}
    for path in paths:
        page = reader.open(path)
        reader.complaints = [said for said in reader.complaints if "[DOM]" not in said]
        reader.check()
        violations = reader.axe_violations()
        # What axe styles itself is no fault of the page.
        reader.complaints.clear()
        if page.evaluate("document.documentElement.scrollWidth") > width:
            violations.append("scrolls sideways")
        if violations:
            found[path] = violations
    assert found == {}, "\n".join(f"{path}: {what}" for path, what in found.items())

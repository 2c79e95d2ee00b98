"""Ids of another project in the fields of forms: nothing is changed, and nothing leads there."""

import re
from typing import Any

import pytest
from django.db import models
from django.http import QueryDict

from diagnostics.accounts.administration import project_path
from diagnostics.accounts.models import Project
from tests.security.addresses import Address, all_addresses
from tests.security.foreign_rows import FIXED, first_of, model_of, rows_to_make
from tests.security.test_roles import NOT_OURS
from tests.security.test_two_projects import Sides, rows_of
from tests.security.test_two_projects import sides as sides
from tests.signing import PASSWORD, signed_in

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
FIELD = re.compile(r'name="([a-z_-]+)"')
BUTTON = re.compile(r'<button[^>]* name="([a-z_-]+)" value="([^"]+)"')
# Of lists and actions, whose forms have no box for them on a page without rows.
MORE = {"id", "position", "assignee", "back", "view", "rule", "group", "event", "routing"}
FORM = "application/x-www-form-urlencoded"


def path_of(address: Address, project: Project) -> str:
    """Return the path of an address to rows of the project."""
    named = {name: model_of(address.route, name) for name in address.names}
    values = {
        name: str(first_of(model, project).pk) if model else FIXED[name][0]
        for name, model in named.items()
    }
    return address.path(**values)


def strays(project: Project) -> list[str]:
    """Return the foreign keys of a project's rows that lead to rows of another project."""
    found = []
    for model in rows_to_make():
        rows: Any = model._default_manager.filter(**{str(project_path(model)): project.pk})
        for field in model._meta.fields:
            target: Any = field.related_model
            path = project_path(target) if isinstance(field, models.ForeignKey) else None
            if path is not None:
                owner = field.name if path == "pk" else f"{field.name}__{path}"
                linked = rows.filter(**{f"{field.name}__isnull": False})
                if linked.exclude(**{owner: project.pk}).exists():
                    found.append(f"{model._meta.label}.{field.name}")
    return found


def test_ids_of_another_project_in_a_form_reach_none_of_its_rows(sides: Sides) -> None:
    sides.user.set_password(PASSWORD)
    sides.user.save()
    client = signed_in("me")
    client.raise_request_exception = False
    ids = sorted({str(first_of(model, sides.theirs).pk) for model in rows_to_make()})
    before, sent = rows_of(sides.theirs), 0
    for address in all_addresses():
        if address.route.startswith(NOT_OURS) or "sign-out" in address.route:
            continue
        path = path_of(address, sides.mine)
        page = client.get(path).getvalue().decode(errors="replace")
        form = QueryDict(mutable=True)
        for name in sorted({*FIELD.findall(page), *MORE} - {"csrfmiddlewaretoken", "of_project"}):
            # A field of one value has the last of them.
            form.setlist(name, [*ids, ids[sent % len(ids)]])
        for name, value in BUTTON.findall(page):
            form[name] = value
        client.post(path, form.urlencode(), FORM)
        sent += 1
    assert sent > 100
    assert strays(sides.mine) == []
    assert rows_of(sides.theirs) == before

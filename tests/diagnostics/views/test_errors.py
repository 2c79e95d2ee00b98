"""What a reader sees when a page of ours breaks."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client, RequestFactory

from diagnostics.views.errors import server_error


def test_page_has_an_id_that_is_in_the_log(
    rf: RequestFactory, caplog: pytest.LogCaptureFixture
) -> None:
    answer = server_error(rf.get("/goals/"))
    found = re.search(r"<code>([0-9a-f]{12})</code>", answer.content.decode())
    assert answer.status_code == 500
    assert found is not None
    assert found[1] in caplog.text


@pytest.mark.django_db
def test_broken_page_is_answered_with_it(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("canary-of-the-cause")

    monkeypatch.setattr("diagnostics.views.access.memberships_of", broken)
    client.force_login(User.objects.create(username="ann"))
    client.raise_request_exception = False
    answer = client.get("/")
    assert answer.status_code == 500
    assert b"Something broke on our side" in answer.content
    assert b"canary" not in answer.content

"""People who have really signed in: what settings pages ask for."""

from typing import Any

from django.contrib.auth import get_user_model
from django.core import mail
from django.core.mail import EmailMessage
from django.test import Client

from config.accounts import MAILS
from diagnostics.accounts.models import Membership, Project

PASSWORD = "correct horse battery staple"


def sent_mails() -> list[EmailMessage]:
    """Return the mails so far, with those of sign-in, which are sent after the answer."""
    MAILS.submit(int).result()
    return mail.outbox


def make_person(name: str = "ada", **fields: Any) -> Any:
    """Give a person with a password."""
    people = get_user_model().objects
    return people.create_user(name, f"{name}@example.org", PASSWORD, **fields)


def join(user: Any, project: Project, role: str = "admin") -> Membership:
    """Make a person a member."""
    return Membership.objects.create(project=project, user=user, role=role)


def signed_in(name: str = "ada") -> Client:
    """Give a client that signed in with the password just now."""
    client = Client()
    answer = client.post("/accounts/login/", {"login": name, "password": PASSWORD})
    assert answer.status_code == 302, answer.content
    return client

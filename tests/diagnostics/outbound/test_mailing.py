"""Mails as they leave: two parts, clean headers, styles in attributes."""

from email import message_from_bytes, policy
from email.message import EmailMessage as ParsedMail
from pathlib import Path
from typing import Any

import pytest
from django.core import mail
from django.core.mail import EmailMultiAlternatives

from diagnostics.outbound.mail import compose

HTML = """{% extends "mail/_frame.html" %}{% block body %}
<h1 class="bad">{{ model }}</h1>{% endblock %}"""
TEXT = """{% extends "mail/_frame.txt" %}{% block body %}{{ model }}{% endblock %}"""


@pytest.fixture(autouse=True)
def _templates(tmp_path: Path, settings: Any) -> None:
    (tmp_path / "mail").mkdir()
    (tmp_path / "mail/trial.html").write_text(HTML)
    (tmp_path / "mail/trial.txt").write_text(TEXT)
    (first, *rest) = settings.TEMPLATES
    settings.TEMPLATES = [{**first, "DIRS": [*first["DIRS"], tmp_path]}, *rest]
    settings.FAILSOFT_BASE_URL = "https://failsoft.example"


def make(**changes: Any) -> EmailMultiAlternatives:
    given = {
        "subject": "Trial",
        "template": "trial",
        "context": {"model": "haiku"},
        "to": ["a@example.org"],
        **changes,
    }
    return compose(**given)


def parsed(message: EmailMultiAlternatives) -> ParsedMail:
    found = message_from_bytes(message.message().as_bytes(), policy=policy.default)
    assert isinstance(found, ParsedMail)
    return found


def part(message: EmailMultiAlternatives, kind: str) -> str:
    found = parsed(message).get_body((kind,))
    assert found is not None
    return str(found.get_content())


def test_a_mail_has_a_text_part_and_an_html_part() -> None:
    made = make()
    assert "haiku" in part(made, "plain")
    assert "haiku" in part(made, "html")
    assert parsed(made)["Auto-Submitted"] == "auto-generated"
    assert "https://failsoft.example" in part(made, "plain")


def test_values_are_escaped_in_html_and_plain_in_text() -> None:
    made = make(context={"model": "<b>&x</b>"})
    assert "<b>&x</b>" in part(made, "plain")
    assert "&lt;b&gt;&amp;x&lt;/b&gt;" in part(made, "html")


def test_styles_are_attributes_and_the_dark_sheet_stays() -> None:
    html = part(make(), "html")
    assert "color: #b4231b" in html.partition("<body")[2]
    assert html.count("<style") == 1
    assert "prefers-color-scheme: dark" in html


def test_nothing_is_loaded_from_elsewhere() -> None:
    html = part(make(), "html")
    assert "<img" not in html
    assert "url(" not in html
    assert "<link" not in html


def test_s15_a_model_name_makes_no_header() -> None:
    made = make(subject="x\r\nBcc: c@d", to=["a@example.org"], headers={"X-A": "1\r\nB: 2"})
    found = parsed(made)
    assert found["Subject"] == "x Bcc: c@d"
    assert found["Bcc"] is None
    assert found["X-A"] == "1 B: 2"
    assert made.recipients() == ["a@example.org"]


def test_a_message_id_is_kept_or_made() -> None:
    assert parsed(make(headers={"Message-ID": "<a@b>"}))["Message-ID"] == "<a@b>"
    made = parsed(make())["Message-ID"]
    assert made.endswith("@failsoft.example>")
    assert made != parsed(make())["Message-ID"]


def test_it_can_be_sent() -> None:
    make().send()
    assert [one.subject for one in mail.outbox] == ["Trial"]

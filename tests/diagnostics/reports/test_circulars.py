"""One mail for many: personal values end up where they belong, encoded as their part is."""

import re
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

import pytest
from django.core import mail
from django.core.mail import get_connection

from diagnostics.outbound.mail import Copy, MailMerge
from diagnostics.reports.archive import PERSONAL, mail_merge_of
from diagnostics.reports.rendering import Letter
from tests.diagnostics.reports.builders import make_document, make_model

VALUES = {
    "why": "Because <you> & Ä want it",
    "skipped": "",
    "change": "https://failsoft.example/reports/subscriptions/7/",
    "pause": "https://failsoft.example/reports/pause/7-1-t.sig/",
    "unsubscribe": "https://failsoft.example/reports/unsubscribe/7-1-t.sig/?a=b&c=d",
}


def copy_to(circular: MailMerge, address: str = "ann@example.org", **headers: str) -> Copy:
    return circular.copy_for(address, VALUES, "<report-7@failsoft.example>", headers)


def parsed(copy: Copy) -> EmailMessage:
    found = message_from_bytes(copy.message().as_bytes(), policy=policy.default)
    assert isinstance(found, EmailMessage)
    return found


def part(copy: Copy, kind: str) -> str:
    found = parsed(copy).get_body((kind,))
    assert found is not None
    return str(found.get_content())


def long_document(kind: str) -> Any:
    if kind == "8bit":
        return make_document()
    # A line longer than SMTP allows: the part becomes quoted-printable.
    return make_document(url="/?q=" + "%C3%A4" * 400)


@pytest.mark.parametrize("kind", ["8bit", "quoted"])
def test_values_stand_in_both_parts(kind: str) -> None:
    copy = copy_to(mail_merge_of(Letter(long_document(kind))))
    assert ("quoted-printable" in copy.encoded.decode()) is (kind == "quoted")
    text, html = part(copy, "plain"), part(copy, "html")
    assert VALUES["why"] in text
    assert VALUES["unsubscribe"] in text
    assert "Because &lt;you&gt; &amp; Ä want it" in html
    assert 'href="https://failsoft.example/reports/unsubscribe/7-1-t.sig/?a=b&amp;c=d"' in html


@pytest.mark.parametrize("kind", ["8bit", "quoted"])
def test_the_picture_of_a_curve_comes_with_the_page_that_shows_it(kind: str) -> None:
    copy = copy_to(mail_merge_of(Letter(long_document(kind))))
    mail_of = parsed(copy)
    related = mail_of.get_body(("related",))
    assert related is not None
    (picture,) = related.iter_attachments()
    assert picture["Content-ID"] == "<curve-1@failsoft>"
    assert picture.get_content_type() == "image/png"
    assert picture.get_content().startswith(b"\x89PNG")
    assert 'src="cid:curve-1@failsoft"' in part(copy, "html")
    assert re.search(r'alt="Share of degraded runs every [^"]+"', part(copy, "html"))
    assert [one.get_content_type() for one in mail_of.iter_parts()] == [
        "text/plain",
        "multipart/related",
    ]
    assert len(picture.get_content()) < 3_000


def test_two_readers_get_one_body_and_their_own_links() -> None:
    circular = mail_merge_of(Letter(make_document()))
    first = copy_to(circular)
    other = circular.copy_for("bob@example.org", {**VALUES, "why": "Because of Bob"}, "<b@x>", {})
    assert part(first, "html").replace(
        "Because &lt;you&gt; &amp; Ä want it", "Because of Bob"
    ) == part(other, "html")
    assert parsed(other)["To"] == "bob@example.org"
    assert parsed(other)["Message-ID"] == "<b@x>"


def test_s15_no_value_makes_a_header() -> None:
    models = [make_model("x\r\nBcc: a@b", 0.3)]
    document = make_document(title="x\r\nBcc: a@b", models=models)
    circular = mail_merge_of(Letter(document))
    copy = circular.copy_for("ann@example.org", VALUES, "<a@b>\r\nX: 1", {"X-Y": "1\r\nBcc: e@f"})
    found = parsed(copy)
    assert found["Bcc"] is None
    assert found.get_all("Subject") == [circular.subject]
    assert found["X-Y"] == "1 Bcc: e@f"
    assert copy.subject.startswith("x Bcc: a@b weekly")


def test_s15_an_address_that_is_more_than_one_is_refused() -> None:
    circular = mail_merge_of(Letter(make_document()))
    with pytest.raises(ValueError, match="Invalid address"):
        copy_to(circular, "ann@example.org\r\nBcc: c@d")


def test_a_copy_goes_through_any_backend(capsys: pytest.CaptureFixture[str]) -> None:
    copy = copy_to(mail_merge_of(Letter(make_document())))
    get_connection("django.core.mail.backends.console.EmailBackend").send_messages([copy])
    assert "claude-haiku" in capsys.readouterr().out
    copy.send()
    assert mail.outbox[0].to == ["ann@example.org"]


def test_every_personal_name_is_in_the_templates() -> None:
    circular = mail_merge_of(Letter(make_document()))
    values = {name: f"value-of-{name}" for name in PERSONAL}
    copy = circular.copy_for("a@b", values, "<a@b>", {})
    for value in values.values():
        assert value in part(copy, "plain")
        assert value in part(copy, "html")

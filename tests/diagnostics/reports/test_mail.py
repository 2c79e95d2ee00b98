"""The report mail: both parts say the same, it is small, and it loads nothing."""

import re
from collections import Counter
from html.parser import HTMLParser

import pytest
from pytest_django import Settings

from diagnostics.outbound.mail import render_html, render_text
from diagnostics.reports.document import ReportDocument
from diagnostics.reports.rendering import Letter
from tests.diagnostics.reports.builders import make_document, make_model

LARGEST = 30_000
NUMBER = re.compile(r"\d[\d.,:]*\d|\d")
PERSONAL = {
    "why": "Because of 17 things",
    "skipped": "3 reports passed over",
    "change": "https://failsoft.example/reports/subscriptions/7/",
    "pause": "https://failsoft.example/reports/pause/abc/",
    "unsubscribe": "https://failsoft.example/reports/unsubscribe/abc/",
}


@pytest.fixture(autouse=True)
def base_url(settings: Settings) -> None:
    settings.FAILSOFT_BASE_URL = "https://failsoft.example"


class Shown(HTMLParser):
    """Collects what a reader sees: texts, and where links lead."""

    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.skips = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.skips += tag in ("head", "style")
        if tag == "a":
            self.texts.append(dict(attrs).get("href") or "")

    def handle_endtag(self, tag: str) -> None:
        self.skips -= tag in ("head", "style")

    def handle_data(self, data: str) -> None:
        if not self.skips:
            self.texts.append(data)


def both(document: ReportDocument) -> tuple[str, str]:
    context = {"letter": Letter(document), "personal": PERSONAL, "subject": "Subject"}
    return render_html("report", context), render_text("report", context)


def shown(html: str) -> str:
    parser = Shown()
    parser.feed(html)
    return "\n".join(parser.texts)


BEGUN = make_document().degradation
assert BEGUN is not None
DOCUMENTS = {
    "a bad week": make_document(),
    "two causes": make_document(others=[BEGUN.model_copy(update={"subject": "a/b"})] * 2),
    "many models": make_document(200),
    "all of them bad": make_document(
        models=[make_model(f"m/{at:03}", 0.3 + at / 1000) for at in range(200)]
    ),
    "a calm one": make_document(degradation=None, groups=[], advice=[], incidents=None),
    "nothing ran": make_document(
        degradation=None, models=[], total=make_model("all models", 0.0, runs=0, curve=[])
    ),
    "more kinds of failure": make_document(more_groups=4, remarks=["Told 8 times."]),
}


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
def test_both_parts_say_the_same(document: ReportDocument) -> None:
    html, text = both(document)
    in_html, in_text = NUMBER.findall(shown(html)), NUMBER.findall(text)
    missing = Counter(in_html).keys() ^ Counter(in_text).keys()
    assert missing == set()
    written = text.casefold()
    for word in re.findall(r"[a-z]{4,}", shown(html).casefold()):
        assert word in written


@pytest.mark.parametrize("document", DOCUMENTS.values(), ids=DOCUMENTS)
def test_a_mail_has_at_most_30_kilobytes(document: ReportDocument) -> None:
    html, _ = both(document)
    assert len(html.encode()) <= LARGEST


def test_the_largest_names_there_may_be_keep_it_small() -> None:
    models = [make_model("界" * 60 + str(at), 0.4) for at in range(200)]
    html, text = both(make_document(models=models))
    assert len(html.encode()) <= LARGEST
    assert len(text.encode()) <= LARGEST


def test_nothing_is_loaded_from_elsewhere() -> None:
    html, _ = both(make_document())
    assert not re.search(r"<(script|link|iframe|object|video|audio)\b", html)
    assert re.findall(r'src="([^"]*)"', html) == ["cid:curve-1@failsoft"]
    assert "url(" not in html
    assert "@import" not in html


def test_every_link_is_absolute() -> None:
    html, _ = both(make_document())
    links = re.findall(r'href="([^"]*)"', html)
    assert links
    assert all(
        link.startswith("https://failsoft.example/") or link == "https://failsoft.example"
        for link in links
    )


def test_s13_names_are_escaped() -> None:
    models = [make_model("<script>alert(1)</script>", 0.4)]
    html, text = both(make_document(models=models, degradation=None))
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "<script>alert(1)</script>" in text

"""The view takes disguises off and knows the way back."""

import pytest

from failsoft.redaction.normalise import decode, fold, normalise

# text, what it says
DISGUISES = [
    ("plain", b"plain"),
    ("\uff53\uff4b\uff0d\uff11", b"sk-1"),
    ("s\u200bk\ufeff-\u2060x", b"sk-x"),
    ("ѕкуре", b"skype"),
    (r"\u0073\x6b\u{6b}", b"skk"),
    (r"\\u0073\\\\u006b", b"sk"),
    (r"a\nb\"c\/d", b'a\nb"c/d'),
    ("%73%256b", b"sk"),
    ("&#115;&#x6B;&quot;&amp;lt;", b'sk"<'),
    ("é ü ñ", b"e u n"),
    ("s\u0301k", b"sk"),
    ("100% & more \\ x", b"100% & more \\ x"),
    (r"\u200b\u0073", b"s"),
    ("日本", b"??"),
    ("\ud800", b"?"),
    (r"\u{fffff}", b"?"),
    ("&#1114112;", b"?"),
    (r"\u{110000}", b"?"),
    ("&nbsp;&num;", b" #"),
    ("&#0;&#8203;", b"?"),
]


@pytest.mark.parametrize(("text", "decoded"), DISGUISES)
def test_a_text_is_read_without_its_disguise(text: str, decoded: bytes) -> None:
    assert normalise(text) == decoded


def test_a_span_of_the_view_is_translated_back() -> None:
    text = r"ab\u0073k%2Dxy"
    view = decode(fold(text))
    assert view is not None
    assert view.body == b"absk-xy"
    start, end = view.span(2, 5)
    assert text[start:end] == r"\u0073k%2D"
    assert view.span(0, 2) == (0, 2)
    assert text[slice(*view.span(5, 7))] == "xy"


def test_a_text_without_disguise_needs_no_second_view() -> None:
    assert decode(fold("nothing here")) is None
    assert decode(fold("100 %")) is None

"""Code between backticks in messages."""

import pytest

from diagnostics.templatetags.console import inline_code


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("expected `:` after the key", "expected <code>:</code> after the key"),
        ("`a` or `b`", "<code>a</code> or <code>b</code>"),
        # A backtick without its other one, and two with nothing between them, stay.
        ("one ` alone", "one ` alone"),
        ("``", "``"),
        ("`two\nlines`", "`two\nlines`"),
        # Escaped piece by piece, inside and outside.
        (
            "<b>`<script>alert(1)</script>`&",
            "&lt;b&gt;<code>&lt;script&gt;alert(1)&lt;/script&gt;</code>&amp;",
        ),
        ("{x} `{}` {0}", "{x} <code>{}</code> {0}"),
        (None, ""),
    ],
)
def test_backticks_become_code_and_nothing_else_does(text: str | None, html: str) -> None:
    assert inline_code(text) == html

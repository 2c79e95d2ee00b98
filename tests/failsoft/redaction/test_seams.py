"""Tokens that are wrapped over lines or joined from string literals are masked whole."""

from random import Random

import pytest

from failsoft.redaction import Redactor
from tests.failsoft.redaction.made_up import make

REDACTOR = Redactor()
TOKENS = ("ghp_{alnum:36}", "sk-proj-{alnum:60}", "dop_v1_{hex:64}", "AKIA1{upper:12}A2B")
# Before the first piece, between two, after the last.
WRAPS = [
    ("key: ", "\n     ", "\n"),
    ("> ", "\n> ", "\n> bye"),
    ("+key = ", "\n+", "\n+end"),
    ("-key = ", "\n-", "\n-end"),
    ("export K=", "\\\n", "\n"),
    ('"k": "', "\\n", '"'),
    ("// ", "\r\n// ", "\r\n"),
    ("<p>", "<br/>\n", "</p>"),
    ("| ", " |\n| ", " |"),
    ("k ", "=\n", "\n"),
]
JOINS = [
    ('k = "', '" + "', '"'),
    ("k = '", "' '", "'"),
    ('k = (f"', '"\n     f"', '")'),
    ('k = ["', '", "', '"].join("")'),
    ("select '", "' || '", "'"),
    ('k += "', '"\nk += "', '"'),
    ('\\"', '\\" + \\"', '\\"'),
]


@pytest.mark.parametrize("marks", [*WRAPS, *JOINS], ids=repr)
@pytest.mark.parametrize("template", TOKENS)
def test_a_token_in_pieces_leaves_no_piece(template: str, marks: tuple[str, str, str]) -> None:
    random = Random(template)
    before, between, after = marks
    for _ in range(5):
        token = make(template, random)[0]
        at = random.randint(8, len(token) - 8)
        text = f"{before}{token[:at]}{between}{token[at:]}{after}"
        out = REDACTOR.redact(text).text
        assert token[:at][-6:] not in out
        assert token[at:][:6] not in out
        assert REDACTOR.redact(out).text == out


def test_a_beginning_alone_in_a_literal_is_joined_to_what_follows() -> None:
    token = make("{alnum:36}", Random(4))[0]
    out = REDACTOR.redact(f'k = "ghp_" + "{token}"').text
    assert out == 'k = "[REDACTED:github_token]"'


@pytest.mark.parametrize(
    "text",
    [
        'k = "sk-" + name',
        'parts = ["hf_", "gsk_", "glpat-"]',
        "+ local-model-7b\n+ local-model-13b",
        "keys begin with ghp_\nand the rest is random",
        "sha256:\n  {hex:32}\n  {hex:32}",
        "> see sk-model-1.\n> bye",
        "tables: pk_users,\n  pk_orders_2026",
    ],
)
def test_words_over_lines_and_literals_stay(text: str) -> None:
    filled = make(text, Random(3))[0]
    assert REDACTOR.redact(filled).text == filled


def test_the_line_behind_a_whole_token_stays() -> None:
    token = make("ghp_{alnum:36}", Random(9))[0]
    out = REDACTOR.redact(f"token {token}\nRetrying after a timeout, attempt 2 of 3.").text
    assert out == "token [REDACTED:github_token]\nRetrying after a timeout, attempt 2 of 3."

"""The order of redaction, and what holds for any text at all."""

from random import Random
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failsoft.redaction import FAILED, Redactor, key_values
from failsoft.redaction.pipeline import INPUT_CHARACTERS, MARKER
from failsoft.redaction.rules import load_rules
from tests.failsoft.redaction.made_up import EXAMPLES, make

RULES = load_rules()
KNOWN = make("{alnum:20}", Random(3))[0]
REDACTOR = Redactor(RULES, {KNOWN: "mine"})
# Bits that texts with secrets are made of, so that chance finds the corners.
BITS = [
    "=\n", "=41", "41 42 43 ", "65, 66, ", "\\101", "$6$abc$", "パスワードは", "пароль: ", "H4sI",
    "user anna pass ", "[[REDACTED:a]]", "\\u30d1\\u30b9", "4111 1111 1111 1111", "\ud800", "<d>",
    "password", "=", ": ", '"', "'", "\\", "sk-ant-", "a1b2c3d4e5f6", KNOWN, KNOWN[:12],
    "[REDACTED:x]", "[REDACTED:", "]", "-----BEGIN PRIVATE KEY-----", "\n", "%", "&quot;",
    "\u200b", "Bearer ", "postgres://u:", "@", "4111 1111", " 1111 1111", "é", "😀", "&",
    "token", "cookie: ", "{", "}", "\\u0073", "eyJ", ".", "authorization", "is ",
]  # fmt: skip
texts = st.lists(st.sampled_from(BITS) | st.text(max_size=5), max_size=25).map("".join)


@given(texts, st.none() | st.integers(0, 80))
def test_redaction_is_idempotent(text: str, limit: int | None) -> None:
    once = REDACTOR.redact(text, limit).text
    assert REDACTOR.redact(once, limit).text == once


@given(st.text() | texts)
def test_no_text_makes_it_fail(text: str) -> None:
    assert REDACTOR.redact(text).text != FAILED


@given(texts, st.integers(0, 60))
def test_a_limit_holds_and_cuts_no_marker(text: str, limit: int) -> None:
    text = text.replace("[REDACTED:", "")
    out = REDACTOR.redact(text, limit).text
    assert len(out.encode("utf-8", "surrogatepass")) <= limit
    assert "[REDACTED" not in MARKER.sub("", out)


@pytest.mark.slow
def test_s0_45_no_half_token_is_left_wherever_the_cut_falls() -> None:
    random = Random(11)
    for kind, examples in EXAMPLES.items():
        for example in examples["positive"]:
            secret, pieces = make(example, random)
            text = f"{'x' * 200}\n{secret} {'y ' * 100}"
            for limit in range(203, 290, 9):
                out = REDACTOR.redact(text, limit).text
                leaked = [p for p in pieces if len(p) > 5 and p[:6] in out]
                assert not leaked, (kind, limit)


def test_s0_44_text_around_the_limit_keeps_whole_characters() -> None:
    for letter in ("é", "€", "😀"):
        for limit in range(40, 56):
            out = REDACTOR.redact(letter * 100, limit).text
            assert out == letter * (limit // len(letter.encode()))


def test_a_secret_cut_at_the_input_bound_leaves_nothing() -> None:
    token = "sk-ant-" + make("{alnum:60}", Random(1))[0]
    for inside in (3, 10, 40):
        text = "x " * ((INPUT_CHARACTERS - inside) // 2) + token
        out = REDACTOR.redact(text).text
        assert token[:8] not in out
        assert len(out) <= INPUT_CHARACTERS


def test_a_marker_is_never_masked_again_nor_widened_needlessly() -> None:
    text = 'password = "[REDACTED:secret]" and [REDACTED:jwt]'
    assert REDACTOR.redact(text).text == text
    assert REDACTOR.redact(text).found == ()


def test_what_is_known_best_names_the_kind() -> None:
    body = make("{base64:64}", Random(6))[0]
    pem = f"-----BEGIN PRIVATE KEY-----\\n{body}\\n-----END PRIVATE KEY-----"
    assert REDACTOR.redact(f'{{"private_key": "{pem}"}}').found == ("private_key",)


def test_words_of_other_scripts_around_a_secret_stay() -> None:
    secret = make("a1{alnum:10}", Random(7))[0]
    text = f"DBのパスワード: {secret}#x1、암호는 {secret}입니다, パスワードは「{secret}」です"
    marker = "[REDACTED:secret]"
    assert REDACTOR.redact(text).text == (
        f"DBのパスワード: {marker}、암호는 {marker}입니다, パスワードは「{marker}」です"
    )


def test_text_after_a_forged_marker_is_masked_too() -> None:
    secret = make("{alnum:16}", Random(5))[0]
    out = REDACTOR.redact(f'password = "[REDACTED:x]{secret}"').text
    assert secret not in out


def test_an_escaped_quote_does_not_end_a_secret() -> None:
    head, tail = (make("{alnum:8}", Random(n))[0] for n in (1, 2))
    out = REDACTOR.redact(f'{{"password": "{head}\\"{tail}"}}').text
    assert head not in out
    assert tail not in out


def test_benign_text_is_kept_to_the_letter() -> None:
    text = (
        'The planner said {"steps": [{"step_id": "step_1", "tool": "echo"}]} — “fine”.\n'
        "\uff26\uff35\uff2c\uff2c width, naïve café, \u200b zero width, "
        "100 % of &amp; C:\\new\\table."
    )
    assert REDACTOR.redact(text).text == text


def test_a_failing_redactor_gives_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    redactor = Redactor(RULES, {})
    monkeypatch.setattr(redactor, "_mask_all", None)
    assert redactor.redact("password=" + KNOWN).text == FAILED


def test_a_kind_must_fit_a_marker() -> None:
    with pytest.raises(ValueError, match="kind"):
        Redactor([], {KNOWN: "two words"})


def test_a_value_behind_a_weak_name_is_weighed_by_its_beginning(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    weighed: list[int] = []
    monkeypatch.setattr(key_values, "is_random", lambda value: weighed.append(len(value)))
    REDACTOR.redact("key=" * 1_000)
    assert 0 < sum(weighed) < 300 * 1_000


def test_a_quoted_value_is_read_no_further_than_it_is_weighed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lengths: list[int] = []
    monkeypatch.setattr(
        key_values, "_judged", lambda _body, span, *_, **__: lengths.append(span[1] - span[0])
    )
    REDACTOR.redact("pwd=b'dummy" * 1_000)
    assert len(lengths) > 900
    assert max(lengths) < 2 * key_values.MOST


def test_a_long_value_behind_a_weak_name_is_masked_to_its_end() -> None:
    value = Random(7).randbytes(450).hex()
    text = REDACTOR.redact(f'"see token={value}\\nNEXT=1"').text
    assert text == '"see token=[REDACTED:secret]\\nNEXT=1"'


@pytest.mark.parametrize(
    "text",
    ["sk-" + "v1-" * 26 + "A1B2c3d4e5f6", "token: 'a" + ".b1" * 28 + "A'"],
    ids=["versions", "points"],
)
def test_pieces_of_a_slug_that_can_be_read_in_two_ways_are_read_once(text: str) -> None:
    started = process_time()
    REDACTOR.redact(text)
    assert process_time() - started < 1


HOSTILE = {
    "backslashes": "\\" * 65536,
    "names": "password=" * 7000,
    "quotes": 'password="' * 6500,
    "digits": "4" * 65536,
    "spaced digits": "4 " * 32768,
    "percent": "%25" * 21845,
    "entities": "&amp;" * 13107,
    "zero width": "s\u200b" * 32768,
    "keys without end": "-----BEGIN PRIVATE KEY-----" * 2400,
    "markers": "[REDACTED:x] password=" * 2900,
    "addresses": "a://b:" * 10922,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_text_costs_time_in_line_with_its_length(name: str) -> None:
    text = HOSTILE[name]
    REDACTOR.redact(text[:100])

    def cost(length: int) -> float:
        started = process_time()
        REDACTOR.redact(text[:length], 8192)
        return process_time() - started

    small = max(min(cost(8192) for _ in range(3)), 0.002)
    assert min(cost(65536) for _ in range(3)) < 40 * small

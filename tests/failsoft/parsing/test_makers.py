"""What makers write around answers: finish reasons, refusals and calls written as markup."""

import pytest

from failsoft.events import ParseErrorType
from failsoft.parsing import Recovered, RefusedAnswer, recover
from failsoft.parsing.calls import call_markup
from failsoft.parsing.makers import MAKERS, FinishClass, declines, ending_of

DOCUMENT = '{"city": "Bergen"}'


def test_every_reason_has_one_class_whoever_uses_it() -> None:
    classes: dict[str, set[str]] = {}
    for name, reasons in MAKERS["finish_reasons"].items():
        for reason in reasons:
            classes.setdefault(reason, set()).add(FinishClass(name))
            assert ending_of(reason) is FinishClass(name)
    assert not {reason: found for reason, found in classes.items() if len(found) > 1}


@pytest.mark.parametrize(
    ("reason", "ending"),
    [
        (None, None),
        ("", None),
        ("Stop", FinishClass.STOP),
        ("tool-calls", FinishClass.TOOL_CALLS),
        ("FINISH_REASON_MAX_TOKENS", FinishClass.LENGTH),
        ("FinishReason.PROHIBITED_CONTENT", FinishClass.BLOCK),
        ("StopReason.guardrail_intervened", FinishClass.BLOCK),
        ("Candidate.FinishReason.MAX_TOKENS", FinishClass.LENGTH),
        ("MALFORMED_FUNCTION_CALL", FinishClass.MALFORMED),
        ("USER_CANCEL", FinishClass.INTERRUPTED),
        ("REASON_MAX_LEN", FinishClass.LENGTH),  # xAI
        ("token_limit", FinishClass.LENGTH),  # watsonx
        ("sensitive", FinishClass.BLOCK),  # Zhipu
        ("endTurn", FinishClass.STOP),  # Strands
        ("contentFiltered", FinishClass.BLOCK),
        ("blocked", FinishClass.BLOCK),  # Genkit
        ("a reason of next year", FinishClass.OTHER),
    ],
)
def test_a_reason_is_read_in_any_spelling(reason: str | None, ending: FinishClass | None) -> None:
    assert ending_of(reason) is ending


@pytest.mark.parametrize(
    ("reason", "error_type"),
    [
        ("SPII", ParseErrorType.REFUSAL),
        ("content-filter", ParseErrorType.REFUSAL),
        ("UNEXPECTED_TOOL_CALL", ParseErrorType.NOT_JSON),
    ],
)
def test_an_answer_that_its_maker_withheld_or_could_not_read_is_refused(
    reason: str, error_type: ParseErrorType
) -> None:
    outcome = recover(DOCUMENT, reason)
    assert isinstance(outcome, RefusedAnswer)
    assert outcome.error_type is error_type


@pytest.mark.parametrize("reason", ["abort", "ERROR_LIMIT", "insufficient_system_resource"])
def test_an_interrupted_answer_counts_only_if_its_root_had_closed(reason: str) -> None:
    whole, cut = recover(DOCUMENT, reason), recover(DOCUMENT[:-1], reason)
    assert isinstance(whole, Recovered)
    assert isinstance(cut, RefusedAnswer)
    assert cut.error_type is ParseErrorType.TRUNCATED


@pytest.mark.parametrize(
    "text",
    [
        "I won't write this plan.",
        "Thank you for asking. I'm not able to do this for you.",
        "Das kann ich leider nicht für dich tun.",
        "Je ne peux pas donner suite à cette demande.",
        "Perdón, no podemos tramitar esta petición.",
        "Infelizmente não consigo atender ao pedido.",
        "Purtroppo non posso aiutarti.",
        "Het spijt me, daar kan ik niet mee helpen.",
        "Niestety nie mogę tego zrobić.",
        "Tyvärr kan jag inte hjälpa till med det.",
        "К сожалению, я не могу выполнить этот запрос.",
        "На жаль, я не можу допомогти з цим.",
        "Üzgünüm, bu konuda yardımcı olamam.",
        "Maaf, saya tidak dapat membantu permintaan ini.",
        "Xin lỗi, tôi không thể giúp bạn việc này.",
        "很抱歉，我无法回答这个问题。",
        "申し訳ございませんが、その依頼には対応できません。",
        "죄송하지만 그 요청은 처리할 수 없습니다.",
        "عذرا، لا يمكنني المساعدة في ذلك.",
        "क्षमा करें, मैं यह नहीं कर सकता।",
        "Beklager, jeg kan ikke hjelpe med dette.",
        "Bohužel s tím nemůžu pomoci.",
        "En voi auttaa tässä asiassa.",
        "Ebben nem tudok segíteni.",
        "Nu vă pot ajuta cu acest lucru.",
        "Δεν μπορώ να βοηθήσω σε αυτό.",
        "نمی‌توانم این کار را انجام دهم.",
        "אני לא יכול לעזור בזה.",
        "ฉันไม่สามารถทำสิ่งนี้ได้",
        "আমি এটি করতে পারছি না।",
        "Booking rooms is beyond my capabilities.",
    ],
)
def test_a_refusal_is_known_in_any_of_the_languages(text: str) -> None:
    assert declines(text)
    outcome = recover(text)
    assert isinstance(outcome, RefusedAnswer)
    assert outcome.error_type is ParseErrorType.REFUSAL


@pytest.mark.parametrize(
    "text",
    [
        "The weather in Bergen is fine today.",
        "Das Wetter ist heute schön, nicht wahr?",
        "天气很好。",
        "You cannot miss the harbour; it is next to the fish market.",
    ],
)
def test_prose_that_declines_nothing_is_no_refusal(text: str) -> None:
    assert not declines(text)


MARKUP = (
    '<｜DSML｜invoke name="weather">\n<｜DSML｜parameter name="city" string="true">Bergen',
    '<function_calls><invoke name="weather"><parameter name="city">Bergen</parameter></invoke>',
    "<tool_call>\n<function=weather>\n<parameter=city>\nBergen\n</parameter>",
    "<tool_call>weather\n<arg_key>city</arg_key>\n<arg_value>Bergen</arg_value></tool_call>",
    f'[TOOL_CALLS][{{"name": "weather", "arguments": {DOCUMENT}}}]',
    f"weather[ARGS]{DOCUMENT}",
    f"<|tool_call_begin|>functions.weather:0<|tool_call_argument_begin|>{DOCUMENT}",
    f"<|start|>assistant<|channel|>commentary to=functions.weather<|message|>{DOCUMENT}",
    '<|python_tag|>weather.call(city="Bergen")',
    f"Thought: it rains.\nAction: weather\nAction Input: {DOCUMENT}",
)


@pytest.mark.parametrize("text", MARKUP)
def test_a_call_written_as_markup_is_found_behind_prose_too(text: str) -> None:
    assert call_markup(text) is not None
    behind = call_markup(f"Let me see.\n\n{text}")
    assert behind is not None
    assert behind >= len("Let me see.")


@pytest.mark.parametrize(
    "text",
    [
        "Wrap it in <tool_call> tags, then close them.",
        "The [TOOL_CALLS] marker starts a call.",
        "A model writes <|python_tag|> before code.",
        "Action: none is needed.",
        DOCUMENT,
    ],
)
def test_a_mark_that_is_mentioned_in_a_sentence_is_no_call(text: str) -> None:
    assert call_markup(text) is None

"""The mistakes that feedback names: a table from the causes of errors to lines of a prompt."""

import re
from collections.abc import Iterable, Sequence

from failsoft.events import ParseErrorType
from failsoft.parsing.thinking import ONLY_REASONING

MOST_LINES = 5
_NO_CALL = "no_tool_call"
# Codes of errors, as regular expressions; the first that fits gives the line.
_LINES: Sequence[tuple[str, str]] = (
    # what stands in place of the answer
    ("prose", "sentences in place of the JSON"),
    ("markdown_list", "a Markdown list in place of JSON"),
    ("example", "an example, a format or a template in place of the answer"),
    ("call_markup|malformed_call|tool_call", "a tool call in place of the answer"),
    ("schema_echo", "the JSON Schema in place of an answer that fits it"),
    ("program", "a program that builds the answer in place of the finished JSON"),
    ("only_thinking|open_thinking", "thinking that no answer follows"),
    (ONLY_REASONING, "reasoning until no tokens are left: reason less, then answer"),
    (ParseErrorType.EMPTY_OUTPUT, "an answer without text"),
    # how it is written
    (
        "unescaped_quote|unclosed_string",
        'a quote inside a string without a backslash before it: write \\"',
    ),
    ("backslash", "a single backslash inside a string: write two"),
    ("half_character", "an escape of half a character, such as \\ud83d alone"),
    ("(number_)?not_finite", "NaN or Infinity: write a number, a string or null"),
    ("number_too_large|too_many_digits", "a number beyond the usual range: write it as a string"),
    ("leading_zeros|number_separators", "a number such as 007 or 1,000: write 7 and 1000"),
    ("missing_quotes", "text without quotes around it"),
    ("left_out", "leaving out parts with ... or a comment: write out everything"),
    (
        ParseErrorType.NOT_JSON,
        "text, comments, trailing commas or single quotes in or around the JSON",
    ),
    (
        ParseErrorType.TRUNCATED,
        "stopping before the last bracket: give fewer steps and shorter texts",
    ),
    (ParseErrorType.MULTIPLE_OBJECTS, "more than one JSON object, or a second version of it"),
    (ParseErrorType.DUPLICATE_KEY, "the same key twice in one object"),
    # what it says
    ("key_unknown|extra_forbidden", "keys that the form does not have"),
    ("argument_missing", "leaving out an argument that a tool requires"),
    ("argument_unknown", "an argument that its tool does not have"),
    ("argument_invalid", "an argument of another type or value than its tool takes"),
    ("tool_unknown|unknown_tool", "a tool that is not listed"),
    ("args_mixed", "args beside a tool object: they belong inside it"),
    ("(steps|step_id|tool)_empty|empty_list|.*too_short", "an empty text or list"),
    ("step_id_missing|(steps_|tool_|tool_name_)?missing|required", "leaving out a required key"),
    ("step_id_.+|step_sequence_.+", "ids other than step_1, step_2, ... each used once"),
    ("dependency_.+", "a dependency on a step that does not exist, or a circle of dependencies"),
    ("reference_.+", "a reference to the output of a step that does not exist, or of itself"),
    ("union_tag.+", "a kind other than call_tool, ask_user or finish"),
    ("enum|literal_error|choice", "a value that is not among those a field allows"),
    (_NO_CALL, "text instead of calls of tools"),
    ("bad_envelope", "a call without a name and arguments"),
    ("id_length", "an id that was made up"),
    ("contract_version_.+", "a contract_version: leave it out"),
    (".+_(type|parsing)|whole_number", "a value of another type than the form shows"),
    (".*too_(long|deep|large|many.*)", "more or longer values than are allowed"),
    (".*", "keys or values that the form does not allow"),
)
_ON_REFUSAL = (
    "declining the whole goal because of one part of it: leave out that part",
    "declining beside an example, a template or a plan: it will not be used",
)


def mistakes_in(error_type: ParseErrorType, codes: Iterable[str | None]) -> list[str]:
    """Return the mistakes to avoid after errors with these codes: at least one."""
    if error_type is ParseErrorType.REFUSAL:
        return list(_ON_REFUSAL)
    causes = [code or error_type for code in codes] or [error_type]
    if _NO_CALL in causes and error_type is not ParseErrorType.SCHEMA_INVALID:
        causes.append(error_type)
    lines = (
        next(line for pattern, line in _LINES if re.fullmatch(pattern, cause)) for cause in causes
    )
    return list(dict.fromkeys(lines))[:MOST_LINES]

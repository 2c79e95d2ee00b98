"""The recovering parser on damaged answers that nobody wrote by hand: made from a seed.

    python -m bench.damage --seed 7 --count 40            40 answers of each kind of damage
    python -m bench.damage --seed 7 --count 40 --show 3   and the first three that went wrong

Whole documents are written as tokens and damaged at a place drawn from the seed, so that the
value, or the place of the fault, is known without a parser. The kinds are those that docs/parser.md
promises to recover or to refuse. A refusal is right at the exact line and column only.
"""
# ruff: noqa: ANN401, RUF001, T201 - any JSON, look-alikes, seeded chance, a benchmark prints

import argparse
import csv
import io
import json
import random
import re
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from failsoft.parsing import Recovered, recover
from failsoft.parsing.tracing import same

# Stands where the fault is and is taken out of the text again.
MARK = "\ue000"
_POOLS: dict[str, list[Any]] = tomllib.loads(
    Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
)


@dataclass(frozen=True, slots=True)
class Damaged:
    """One damaged answer with its value, or with the type and place of its refusal."""

    kind: str
    text: str
    value: Any = None
    error_type: str | None = None
    line: int = 0
    column: int = 0


@dataclass(slots=True)
class Token:
    """One token of a document; `role` tells keys, members and elements apart."""

    kind: str
    text: str
    role: str
    depth: int


Rng = random.Random
Tokens = list[Token]
# Return the text; beside it another value than the document's, or another error than the kind's.
Damage = Callable[[Rng, Tokens, Any], str | tuple[str, Any] | None]

WORDS = _POOLS["words"]
KEYS = _POOLS["keys"]
TRICKY = _POOLS["tricky"]


def phrase(rng: Rng, low: int = 1, high: int = 5) -> str:
    return " ".join(rng.choices(WORDS, k=rng.randint(low, high)))


def scalar(rng: Rng) -> Any:
    draw = rng.random()
    if draw < 0.35:
        return phrase(rng)
    if draw < 0.55:
        return rng.choice(TRICKY)
    if draw < 0.8:
        return rng.choice([rng.randint(-20, 5000), round(rng.random() * 100, 3), 0])
    return rng.choice([True, False, None])


def mapping(rng: Rng, depth: int) -> dict[str, Any]:
    keys = rng.sample(KEYS, rng.randint(1, 5))
    return {key: value(rng, depth - 1) for key in keys}


def value(rng: Rng, depth: int) -> Any:
    """Draw any value of at most `depth` levels."""
    draw = rng.random()
    if depth > 0 and draw < 0.2:
        return mapping(rng, depth)
    if depth > 0 and draw < 0.4:
        if rng.random() < 0.5:
            return [phrase(rng, 1, 2) for _ in range(rng.randint(0, 4))]
        return [value(rng, depth - 1) for _ in range(rng.randint(0, 4))]
    return scalar(rng)


def document(rng: Rng) -> Any:
    """Draw what models are asked for: a plan, a call, a decision, records, a configuration."""
    draw = rng.randrange(5)
    if draw == 0:
        steps = [
            {
                "step_id": f"step_{i + 1}",
                "title": phrase(rng),
                "dependencies": [f"step_{i}"] if i else [],
                "tool": rng.choice(["echo", "http_get"]),
                "args": mapping(rng, 1),
            }
            for i in range(rng.randint(1, 4))
        ]
        return {"steps": steps}
    if draw == 1:
        return {"kind": "call_tool", "tool": rng.choice(WORDS), "args": mapping(rng, 2)}
    if draw == 2:
        reasons = [rng.choice([phrase(rng), rng.choice(TRICKY)]) for _ in range(3)]
        return {"decision": "complete", "check_id": f"c-{rng.randrange(99)}", "reasons": reasons}
    if draw == 3:
        return [mapping(rng, 2) for _ in range(rng.randint(2, 4))]
    return mapping(rng, 3)


_TOKEN = re.compile(
    r'(?P<string>"(?:[^"\\]|\\.)*")|(?P<space>\s+)|(?P<mark>[{}\[\],:])|(?P<bare>[^\s,:{}\[\]]+)'
)
_KINDS = {"{": "open", "[": "open", "}": "close", "]": "close", ",": "comma", ":": "colon"}


def tokens_of(text: str) -> Tokens:
    tokens: Tokens = []
    stack: list[str] = []
    expects_key = False
    for match in _TOKEN.finditer(text):
        kind, part = str(match.lastgroup), match[0]
        inside = "member" if stack and stack[-1] == "{" else "element"
        if kind == "mark":
            kind = _KINDS[part]
            if kind == "close":
                stack.pop()
            tokens.append(Token(kind, part, inside, len(stack)))
            if kind == "open":
                stack.append(part)
            if kind != "colon":
                expects_key = kind != "close" and bool(stack) and stack[-1] == "{"
            else:
                expects_key = False
            continue
        if kind == "string" and expects_key:
            kind = "key"
        if kind == "bare":
            kind = "literal" if part[0] in "tfn" else "number"
        tokens.append(Token(kind, part, inside, len(stack)))
    return tokens


def write(rng: Rng, document: Any) -> str:
    """Write a document in one of the layouts that models use."""
    layout: dict[str, Any] = rng.choice(
        [{}, {"indent": 2}, {"indent": 4}, {"separators": (",", ":")}, {"indent": "\t"}]
    )
    return json.dumps(document, ensure_ascii=rng.random() < 0.2, **layout)


def join(tokens: Tokens) -> str:
    return "".join(token.text for token in tokens)


def places(tokens: Tokens, *kinds: str) -> list[int]:
    return [i for i, token in enumerate(tokens) if token.kind in kinds]


def edit(
    rng: Rng, tokens: Tokens, kinds: str, change: Callable[[Token], str | None], share: float = 1.0
) -> str | None:
    """Rewrite tokens of some kinds, each with a probability; None when none can be."""
    changed = {i: change(tokens[i]) for i in places(tokens, *kinds.split())}
    chosen = {i: text for i, text in changed.items() if text is not None}
    if not chosen:
        return None
    kept = {i for i in chosen if rng.random() < share} or {rng.choice(sorted(chosen))}
    return "".join(chosen[i] if i in kept else token.text for i, token in enumerate(tokens))


def edits(
    kinds: str, change: Callable[[Rng, Token], str | None], *shares: float
) -> Callable[[Rng, Tokens, Any], str | None]:
    """Return a damage to tokens of some kinds, to each with a probability, one of several."""

    def apply(rng: Rng, tokens: Tokens, _: Any) -> str | None:
        share = rng.choice(shares) if len(shares) > 1 else sum(shares) or 1.0
        return edit(rng, tokens, kinds, lambda token: change(rng, token), share)

    return apply


def at_one(
    kinds: str,
    write: Callable[[Rng, Tokens, int], str | tuple[str, Any]],
    fits: Callable[[Tokens, int], bool] = lambda tokens, at: True,
) -> Damage:
    """Return a damage to one token of some kinds that fits."""

    def apply(rng: Rng, tokens: Tokens, _: Any) -> str | tuple[str, Any] | None:
        fit = [i for i in places(tokens, *kinds.split()) if fits(tokens, i)]
        return write(rng, tokens, rng.choice(fit)) if fit else None

    return apply


def inner(token: Token) -> str:
    return token.text[1:-1]


def is_member(tokens: Tokens, at: int) -> bool:
    return tokens[at].role == "member"


def next_token(tokens: Tokens, at: int) -> int:
    at += 1
    while at < len(tokens) and tokens[at].kind == "space":
        at += 1
    return at


def drop(tokens: Tokens, at: int, text: str = "") -> str:
    """Write all tokens with `text` in the place of one."""
    return join(tokens[:at]) + text + join(tokens[at + 1 :])


# What must be recovered: around the document.


def fenced(rng: Rng, text: str) -> str:
    fence = rng.choice(["```", "````", "~~~"])
    lang = rng.choice(["json", "", "JSON", "json5", "javascript"])
    body = f"{fence}{lang}\n{text}\n" + rng.choice([fence, fence, f"{fence}\n", ""])
    return rng.choice(["", "Here is the plan:\n\n", "Sure!\n"]) + body


def quoted_fence(rng: Rng, text: str) -> str:
    return re.sub(r"^", "> ", f"```json\n{text}\n```", flags=re.MULTILINE)


def in_template(rng: Rng, pool: str, text: str) -> str:
    template = rng.choice(_POOLS[pool])
    if isinstance(template, list):
        template = template["`" in text]
    return str(template).replace("§", text)


def in_prose(rng: Rng, text: str) -> str:
    before = rng.choice(_POOLS["before_in_prose"])
    behind = rng.choice(_POOLS["behind_in_prose"])
    return f"{before}{rng.choice([' ', chr(10), chr(10) * 2])}{text}\n\n{behind}"


def thought(rng: Rng, text: str) -> str:
    tag, inside = rng.choice(_POOLS["thinking_tags"]), rng.choice(_POOLS["thoughts"])
    written = in_template(rng, "thinking", "§").replace("{tag}", tag).replace("{thought}", inside)
    return written.replace("§", text)


def tagged(rng: Rng, text: str) -> str:
    tag = rng.choice(_POOLS["tags"])
    return in_template(rng, "tagged", "§").replace("{tag}", tag).replace("§", text)


def encoded(rng: Rng, text: str) -> str:
    once = json.dumps(text)
    return rng.choice([once, json.dumps(once), once[1:-1], f"```json\n{once}\n```"])


def csv_field(rng: Rng, text: str) -> str:
    out = io.StringIO()
    csv.writer(out, quoting=csv.QUOTE_ALL).writerow([text])
    field = out.getvalue().rstrip("\r\n")
    return field if rng.random() < 0.5 else field[1:-1]


AROUND: dict[str, Callable[[Rng, str], str]] = {
    "fence": fenced,
    "quoted fence": quoted_fence,
    "prose": in_prose,
    "thinking": thought,
    "tags": tagged,
    "wrapper": lambda r, t: in_template(r, "wrapped", t),
    "double encoding": encoded,
    "odd ends": lambda r, t: in_template(r, "odd_ends", t),
}

# What must be recovered: inside the document.


def requoted(opening: str, closing: str, forbidden: str) -> Damage:
    """Return a damage that writes other quotes, where no string has what they forbid."""

    def apply(rng: Rng, tokens: Tokens, _: Any) -> str | None:
        strings = [tokens[i] for i in places(tokens, "key", "string")]
        if any(re.search(forbidden, inner(token)) for token in strings):
            return None
        return edit(rng, tokens, "key string", lambda token: opening + inner(token) + closing)

    return apply


def single_quoted(rng: Rng, token: Token) -> str:
    return "'" + inner(token).replace('\\"', '"').replace("'", "\\'") + "'"


def with_raw_newlines(rng: Rng, token: Token) -> str | None:
    if not re.search(r"(?<!\\)\\[nt]", token.text):
        return None
    return token.text.replace("\\n", "\n").replace("\\t", "\t")


def newline_in_key(rng: Rng, tokens: Tokens, at: int) -> tuple[str, Any]:
    valid, spoilt = (drop(tokens, at, f'"{inner(tokens[at])}{new}b"') for new in ("\\n", "\n"))
    return spoilt, json.loads(valid)


def literals_in_any_case(rng: Rng, tokens: Tokens, document: Any) -> str | None:
    none = rng.choice(["NONE", "Null", "NULL"])
    words = {"true": "TRUE", "false": "FALSE", "null": none}
    return edit(rng, tokens, "literal", lambda token: words[token.text])


def number_form(rng: Rng, token: Token) -> str | None:
    text = token.text
    if text.startswith("0."):
        return text[1:]
    if re.fullmatch(r"[1-9]\d{3}", text):
        return rng.choice([text[0] + "_" + text[1:], hex(int(text)), "+" + text])
    return "+" + text if text[0] != "-" else None


def trailing_commas(rng: Rng, tokens: Tokens, document: Any) -> str | None:
    out, last = "", ""
    for token in tokens:
        if token.kind == "close" and last not in "{[" and rng.random() < 0.6:
            out += ","
        out += token.text
        last = token.text if token.kind != "space" else last
    return out if out != join(tokens) else None


def comments(rng: Rng, tokens: Tokens, document: Any) -> str | None:
    note = rng.choice(_POOLS["comments"])
    forms = [f" /* {note} */ ", f" // {note}\n", f" # {note}\n", f"<!-- {note} -->"]
    return edits("comma colon open", lambda r, token: token.text + r.choice(forms), 0.2)(
        rng, tokens, document
    )


def separators(rng: Rng, tokens: Tokens, document: Any) -> str | None:
    mark = rng.choice([" =>", " =", "=", "：", " :="])
    if rng.random() < 0.3:
        return edit(rng, tokens, "comma", lambda token: rng.choice([";", "，"]))
    return edit(rng, tokens, "colon", lambda token: mark, rng.choice([0.3, 1.0]))


def tuples(rng: Rng, tokens: Tokens, document: Any) -> str | None:
    text = re.sub(r"\[([^\[\]{}\"]+,[^\[\]{}\"]+)\]", r"(\1)", join(tokens))
    text = re.sub(r'\[(\s*"[\w ]+"(?:,\s*"[\w ]+")+\s*)\]', rng.choice([r"(\1)", r"{\1}"]), text)
    return text if text != join(tokens) and text[0] in "{[" else None


def split_string(rng: Rng, token: Token) -> str | None:
    if token.role != "member" or " " not in inner(token) or "\\" in token.text:
        return None
    left, right = inner(token).split(" ", 1)
    glue = rng.choice(['" + "', '"\n  "', '" "', '" +\n "'])
    return f'"{left} {glue}{right}"'


def without_comma(rng: Rng, tokens: Tokens, at: int) -> str:
    return drop(tokens, at, "" if tokens[at + 1].kind == "space" else " ")


def surplus_closer(rng: Rng, tokens: Tokens, document: Any) -> str | None:
    return join(tokens) + rng.choice(["}", "\n}", "}\n}"]) if isinstance(document, dict) else None


def missing_last_brace(rng: Rng, tokens: Tokens, document: Any) -> str | None:
    if not isinstance(document, dict) or not document:
        return None
    last = list(document.values())[-1]
    if isinstance(last, dict | int | float) and not isinstance(last, bool):
        return None
    return join(tokens[:-1]).rstrip()


def with_inner_quotes(rng: Rng, token: Token) -> str | None:
    words = inner(token).split(" ")
    if len(words) < 3 or not all(word.isalpha() for word in words):
        return None
    at = rng.randrange(1, len(words) - 1)
    return '"' + " ".join([*words[:at], f'\\"{words[at]}\\"', *words[at + 1 :]]) + '"'


def with_backslashes(rng: Rng, token: Token) -> str | None:
    return json.dumps(rng.choice(_POOLS["backslashes"])) if inner(token).isalpha() else None


def from_valid(damage: Callable[[Rng, Tokens, Any], str | None], spoilt: str, by: str) -> Damage:
    """Return a damage whose value is read from valid JSON, of which a pattern is then spoilt."""

    def apply(rng: Rng, tokens: Tokens, document: Any) -> tuple[str, Any] | None:
        valid = damage(rng, tokens, document)
        return None if valid is None else (re.sub(spoilt, by, valid), json.loads(valid))

    return apply


def with_hex_escape(rng: Rng, token: Token) -> str | None:
    first, rest = inner(token)[:1], inner(token)[1:]
    return f'"\\x{ord(first):02x}{rest}"' if first.isascii() and first.isalpha() else None


def triple_quoted(rng: Rng, token: Token) -> str | None:
    return f'"""{inner(token)}"""' if '"' not in inner(token) and inner(token) else None


def continued(rng: Rng, token: Token) -> str | None:
    return token.text.replace(" ", " \\\n", 1) if " " in token.text else None


def odd_spaces(rng: Rng, tokens: Tokens, document: Any) -> str | None:
    space = rng.choice("\u00a0\u3000\u2009\u202f\u200b\ufeff")
    return edit(rng, tokens, "colon comma", lambda token: token.text + space, 0.4)


def repeated_key(rng: Rng, tokens: Tokens, document: Any) -> str | None:
    if not isinstance(document, dict) or not document:
        return None
    key = rng.choice(sorted(document))
    return join(tokens[:-1]).rstrip() + f", {json.dumps(key)}: {json.dumps(document[key])}" + "}"


def closes_plain_values(tokens: Tokens, at: int) -> bool:
    """Ask whether a token closes a member that is an array of several plain values."""
    if tokens[at].text != "]" or tokens[at].role != "element":
        return False
    openings = (
        i
        for i in places(tokens[:at], "open")
        if tokens[i].text == "[" and tokens[i].depth == tokens[at].depth
    )
    opening = max(openings, default=0)
    inside = {token.kind for token in tokens[opening + 1 : at]}
    is_plain = inside <= {"string", "number", "literal", "comma", "space"}
    return is_plain and "comma" in inside and opening > 0 and is_member(tokens, opening)


FULL_WIDTH = str.maketrans("{}[]:,", "｛｝［］：，")
INSIDE: dict[str, Damage] = {
    "single quotes": edits("key string", single_quoted),
    "single quotes, bare": requoted("'", "'", r"(?<!\w)'|'(?!\w)|\\\""),
    "smart quotes": requoted("“", "”", r"[“”]|\\\""),
    "smart single quotes": requoted("‘", "’", "[‘’']"),
    "low quotes": requoted("„", "“", r"[“”„]|\\\""),
    "back quotes": requoted("`", "`", "[`$]"),
    "triple quotes": edits("string", triple_quoted, 0.5),
    "unquoted keys": edits("key", lambda rng, token: inner(token), 0.3, 1.0),
    "key quote": at_one(
        "key", lambda r, t, at: drop(t, at, t[at].text[1:] if r.random() < 0.5 else t[at].text[:-1])
    ),
    "bare value": at_one(
        "string", lambda r, t, at: drop(t, at, inner(t[at])), lambda t, at: inner(t[at]) in WORDS
    ),
    "trailing commas": trailing_commas,
    "comments": comments,
    "separators": separators,
    "number forms": edits("number", number_form, 0.6),
    "python": lambda rng, tokens, document: repr(document),
    "literals in any case": literals_in_any_case,
    "tuples and sets": tuples,
    "joined strings": edits("string", split_string, 0.3),
    "missing comma": at_one("comma", without_comma, is_member),
    "missing colon": at_one("colon", lambda rng, tokens, at: drop(tokens, at, " ")),
    "missing last brace": missing_last_brace,
    "missing bracket": at_one("close", lambda r, tokens, at: drop(tokens, at), closes_plain_values),
    "surplus closer": surplus_closer,
    "raw newlines": edits("string", with_raw_newlines),
    "newline in key": at_one("key", newline_in_key),
    "inner quotes": from_valid(
        edits("string", with_inner_quotes, 0.3), r'(?<=[a-z ])\\"([a-z]+)\\"(?=[ a-z])', r'"\1"'
    ),
    "kept backslashes": from_valid(
        edits("string", with_backslashes, 0.3), r"\\\\(?=[dswSWDQUn(.)])", r"\\"
    ),
    "hex escapes": edits("string", with_hex_escape, 0.4),
    "line continuations": edits("string", continued, 0.4),
    "odd spaces": odd_spaces,
    "full width": edits(
        "open close colon comma", lambda rng, token: token.text.translate(FULL_WIDTH), 0.3, 1.0
    ),
    "repeated key": repeated_key,
    "doubled quotes": lambda rng, tokens, document: csv_field(rng, join(tokens)),
}

# What must be refused; `MARK` stands at the fault.
VALUE = "string number literal"


def cut(rng: Rng, tokens: Tokens, document: Any) -> str | None:
    at = rng.choice([i for i, token in enumerate(tokens) if token.kind != "space" and i > 0])
    kind, part, head = tokens[at].kind, tokens[at].text, join(tokens[:at])
    if kind in ("key", "string"):
        return head + MARK + part[: rng.randint(1, len(part) - 1)]
    if kind in ("number", "literal") and len(part) > 1:
        return head + part[: rng.randint(1, len(part) - 1)] + MARK
    ends = kind in ("colon", "comma") or (kind == "open" and at > 2)
    return head + part + MARK if ends else None


def bad_value(pool: str, kinds: str = VALUE, role: str = "") -> Damage:
    """Return a damage that writes one of a pool in the place of a value."""

    def apply(rng: Rng, tokens: Tokens, document: Any) -> str | tuple[str, Any] | None:
        written = rng.choice(_POOLS[pool])
        marked = written.replace("{fault}", MARK) if "{fault}" in written else MARK + written
        put = at_one(
            kinds, lambda r, t, at: drop(t, at, marked), lambda t, at: role in ("", t[at].role)
        )
        return put(rng, tokens, document)

    return apply


def elided(rng: Rng, tokens: Tokens, at: int) -> str:
    form = rng.choice(_POOLS["elided"])
    return drop(tokens, at, f", {MARK}{form}" + ("," if form[0] == "." else ""))


def conflicting(rng: Rng, tokens: Tokens, document: Any) -> str | None:
    if not isinstance(document, dict) or not document:
        return None
    key = json.dumps(rng.choice(sorted(document)))
    return join(tokens[:-1]).rstrip() + f', {MARK}{key}: "other {rng.randrange(9)}"' + "}"


def second(rng: Rng, tokens: Tokens, document: Any) -> str:
    other: str = rng.choice(_POOLS["second"])
    between = rng.choice(["\n", " ", "\n\n", ", ", "\nor\n", "\n```\n\n```json\n"])
    text = join(tokens) + between + MARK + other
    return f"```json\n{text}\n```" if "```" in between else text


def first_empty(rng: Rng, tokens: Tokens, document: Any) -> str:
    empty, space = rng.choice(["{}", "[]", "[1, 2]"]), rng.choice(["\n", " ", ", "])
    return f"{empty}{space}{MARK}{join(tokens)}"


def constructed(rng: Rng, tokens: Tokens, document: Any) -> str:
    return in_template(rng, "constructed", join(tokens)).replace("{fault}", MARK)


def without(rng: Rng, tokens: Tokens, at: int, space: str = "") -> str:
    """Take off a token; the fault is the next one that is no space."""
    behind = next_token(tokens, at)
    return join(tokens[:at]) + space + join(tokens[at + 1 : behind]) + MARK + join(tokens[behind:])


def may_lose_quote(tokens: Tokens, at: int) -> bool:
    """Ask whether a string is a member's value that is followed by another key."""
    is_followed = tokens[next_token(tokens, at)].kind == "comma"
    return is_member(tokens, at) and is_followed and '"' not in inner(tokens[at])


def is_between_prose(tokens: Tokens, at: int) -> bool:
    """Two names, or two lines, are two strings; prose may go on in the next one."""
    return (
        tokens[at].role == "element"
        and tokens[at - 1].kind == "string"
        and tokens[next_token(tokens, at)].kind == "string"
        and " " in tokens[at - 1].text
        and "\n" not in tokens[at + 1].text
    )


def no_answer(rng: Rng, tokens: Tokens, document: Any) -> tuple[str, str]:
    answers = [(_answer(rng, template), kind) for template, kind in _POOLS["no_answer"]]
    return rng.choice(answers)


def _answer(rng: Rng, template: str) -> str:
    """Write what is no answer, with words and numbers drawn."""
    if "{phrase}" in template:
        template = template.replace("{phrase}", phrase(rng))
    if "{number}" in template:
        template = template.replace("{number}", str(rng.randrange(99)))
    if template == "{deep}":
        return '{"a":' * 64 + MARK + "[1]" + "}" * 64
    return MARK + template


REFUSED: dict[str, tuple[str, Damage]] = {
    "cut": ("truncated", cut),
    "elision": ("not_json", at_one("comma", elided)),
    "conflicting key": ("duplicate_key", conflicting),
    "second answer": ("multiple_objects", second),
    "empty before": ("multiple_objects", first_empty),
    "constructor around": ("not_json", constructed),
    "half escaped": ("not_json", bad_value("half_escaped")),
    "inner quote and mark": ("not_json", bad_value("inner_with_mark", "string")),
    "lost value": ("not_json", at_one(VALUE, without, is_member)),
    "lost closing quote": (
        "not_json",
        at_one("string", lambda r, t, at: drop(t, at, MARK + t[at].text[:-1]), may_lose_quote),
    ),
    "strings beside": (
        "not_json",
        at_one("comma", lambda r, t, at: without(r, t, at, " "), is_between_prose),
    ),
    "stray mark": (
        "not_json",
        at_one("comma colon", lambda r, t, at: drop(t, at, t[at].text + MARK + t[at].text)),
    ),
    "wrong closer": ("not_json", lambda rng, tokens, document: join(tokens[:-1]) + MARK + ")"),
    "open thought": (
        "truncated",
        lambda rng, tokens, _: MARK + rng.choice(_POOLS["open_thoughts"]) + join(tokens),
    ),
    "no answer": ("", no_answer),
    "open comment": (
        "truncated",
        at_one("comma", lambda r, t, at: drop(t, at, f"{t[at].text} {MARK}/* the ")),
    ),
    "no number": ("not_json", bad_value("no_number")),
    "grouped number": ("not_json", bad_value("grouped_number", role="member")),
    "no value": ("not_json", bad_value("no_value")),
    "constructor": ("not_json", bad_value("constructor")),
}


def draw(rng: Rng) -> tuple[Tokens, Any]:
    drawn = document(rng)
    return tokens_of(write(rng, drawn)), drawn


def _recoverable(kind: str, rng: Rng) -> Damaged | None:
    tokens, drawn = draw(rng)
    if kind == "empty":
        text = rng.choice(_POOLS["empty"])
        return Damaged(kind, text, [] if "[" in text else {})
    if kind == "several":
        text = join(tokens)
        for name in rng.sample(_POOLS["recoverable"], 1):
            done = INSIDE[name](rng, tokens, drawn)
            text = text if done is None else str(done)
        for name in rng.sample(["fence", "prose", "thinking", "tags"], 2):
            text = AROUND[name](rng, text)
        return Damaged(kind, text, drawn)
    if kind in AROUND:
        return Damaged(kind, AROUND[kind](rng, join(tokens)), drawn)
    done = INSIDE[kind](rng, tokens, drawn)
    if done is None:
        return None
    return Damaged(kind, done, drawn) if isinstance(done, str) else Damaged(kind, *done)


def _unusable(kind: str, rng: Rng) -> Damaged | None:
    tokens, drawn = draw(rng)
    error_type, damage = REFUSED[kind]
    done = damage(rng, tokens, drawn)
    if done is None:
        return None
    text, error_type = (done, error_type) if isinstance(done, str) else done
    before, _, behind = text.partition(MARK)
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    return Damaged(kind, before + behind, None, error_type, line, column)


def generate(seed: int, count: int) -> Iterator[Damaged]:
    """Yield up to `count` damaged answers of every kind; the same seed gives the same ones."""
    for kind in [*AROUND, *INSIDE, "empty", "several", *REFUSED]:
        make = _unusable if kind in REFUSED else _recoverable
        rng, made = Rng(f"{seed}/{kind}"), 0
        for _ in range(count * 20):
            damaged = make(kind, rng)
            if damaged is not None:
                made += 1
                yield damaged
            if made == count:
                break


def judge(damaged: Damaged) -> str:
    """Say what the parser makes of one answer."""
    read = recover(damaged.text)
    if isinstance(read, Recovered):
        if damaged.error_type is not None:
            return "accepted"
        return "right" if same(read.value, damaged.value) else "wrong"
    if damaged.error_type is None:
        return "refused"
    is_exact = (read.line, read.column) == (damaged.line, damaged.column)
    return "right" if is_exact else "elsewhere"


def show(damaged: Damaged, verdict: str) -> None:
    """Print one answer that went wrong."""
    print(f"--- {damaged.kind}: {verdict}\n{damaged.text}\n    {recover(damaged.text)}")
    if damaged.error_type is not None:
        print(f"    should be {damaged.error_type} {damaged.line}:{damaged.column}")
    else:
        print(f"    should be {damaged.value}")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=40, help="answers of each kind")
    parser.add_argument("--show", type=int, default=0, help="print so many failures of each kind")
    options = parser.parse_args()
    tallies: dict[str, Counter[str]] = {}
    shown: Counter[str] = Counter()
    for damaged in generate(options.seed, options.count):
        verdict = judge(damaged)
        tallies.setdefault(damaged.kind, Counter())[verdict] += 1
        if verdict != "right" and shown[damaged.kind] < options.show:
            shown[damaged.kind] += 1
            show(damaged, verdict)
    for kind, tally in tallies.items():
        wrong = {verdict: n for verdict, n in tally.items() if verdict != "right"}
        print(f"{kind:<24} {tally['right']:>4} of {tally.total():<4} {wrong or ''}")
    for name, is_refused in (("recoverable", False), ("unusable", True)):
        total = sum(
            (tally for kind, tally in tallies.items() if (kind in REFUSED) is is_refused),
            Counter[str](),
        )
        print(f"{name}: {dict(total)} of {total.total()}")


if __name__ == "__main__":
    main()

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
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from failsoft.parsing import Recovered, recover  # noqa: E402 - the path comes first
from failsoft.parsing.tracing import same  # noqa: E402 - the path comes first

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
Damage = Callable[[Rng, Tokens, Any], str | tuple[str, Any] | None]

WORDS = _POOLS["words"]
KEYS = _POOLS["keys"]
TRICKY = _POOLS["tricky"]


def phrase(rng: Rng, low: int = 1, high: int = 5) -> str:
    """Draw plain words."""
    return " ".join(rng.choices(WORDS, k=rng.randint(low, high)))


def scalar(rng: Rng) -> Any:
    """Draw a string, a number or a literal."""
    draw = rng.random()
    if draw < 0.35:
        return phrase(rng)
    if draw < 0.55:
        return rng.choice(TRICKY)
    if draw < 0.8:
        return rng.choice([rng.randint(-20, 5000), round(rng.random() * 100, 3), 0])
    return rng.choice([True, False, None])


def mapping(rng: Rng, depth: int) -> dict[str, Any]:
    """Draw an object."""
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
    """Split valid JSON into tokens."""
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
    """Write tokens as text."""
    return "".join(token.text for token in tokens)


def places(tokens: Tokens, *kinds: str) -> list[int]:
    """Find the tokens of some kinds."""
    return [i for i, token in enumerate(tokens) if token.kind in kinds]


def edit(
    rng: Rng,
    tokens: Tokens,
    kinds: str,
    change: Callable[[Token], str | None],
    *,
    share: float = 1.0,
) -> str | None:
    """Rewrite tokens of some kinds, each with a probability; None when none can be."""
    chosen = {
        i: changed
        for i in places(tokens, *kinds.split())
        if (changed := change(tokens[i])) is not None
    }
    if not chosen:
        return None
    kept = {i for i in chosen if rng.random() < share} or {rng.choice(sorted(chosen))}
    return "".join(chosen[i] if i in kept else token.text for i, token in enumerate(tokens))


def inner(token: Token) -> str:
    """Return the raw text between the quotes of a string."""
    return token.text[1:-1]


def decoded(token: Token) -> str:
    """Return the text that a string stands for."""
    return str(json.loads(token.text))


def next_token(tokens: Tokens, at: int) -> int:
    """Find the next token that is no space."""
    at += 1
    while at < len(tokens) and tokens[at].kind == "space":
        at += 1
    return at


def drop(tokens: Tokens, at: int, text: str = "") -> str:
    """Write all tokens with `text` in the place of one."""
    return join(tokens[:at]) + text + join(tokens[at + 1 :])


# What must be recovered: around the document.


def fenced(rng: Rng, text: str) -> str:
    fence, lang = (
        rng.choice(["```", "````", "~~~"]),
        rng.choice(["json", "", "JSON", "json5", "javascript"]),
    )
    body = f"{fence}{lang}\n{text}\n" + rng.choice([fence, fence, f"{fence}\n", ""])
    return rng.choice(["", "Here is the plan:\n\n", "Sure!\n"]) + body


def quoted_fence(rng: Rng, text: str) -> str:
    return re.sub(r"^", "> ", f"```json\n{text}\n```", flags=re.MULTILINE)


def in_template(rng: Rng, pool: str, text: str) -> str:
    """Put the document into a template."""
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
    return rng.choice(
        [
            json.dumps(text),
            json.dumps(json.dumps(text)),
            json.dumps(text)[1:-1],
            f"```json\n{json.dumps(text)}\n```",
        ]
    )


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


def requote(rng: Rng, tokens: Tokens, opening: str, closing: str, forbidden: str) -> str | None:
    strings = [tokens[i] for i in places(tokens, "key", "string")]
    if any(re.search(forbidden, inner(token)) for token in strings):
        return None
    return edit(rng, tokens, "key string", lambda token: opening + inner(token) + closing)


def single_quotes(rng: Rng, tokens: Tokens, document: Any) -> str | None:
    return edit(
        rng,
        tokens,
        "key string",
        lambda token: "'" + inner(token).replace('\\"', '"').replace("'", "\\'") + "'",
    )


def single_quotes_bare(rng: Rng, tokens: Tokens, document: Any) -> str | None:
    return requote(rng, tokens, "'", "'", r"(?<!\w)'|'(?!\w)|\\\"")


def raw_newlines(rng: Rng, tokens: Tokens, document: Any) -> str | None:
    return edit(
        rng,
        tokens,
        "string",
        lambda token: (
            re.sub(r"\\n", "\n", token.text).replace("\\t", "\t")
            if re.search(r"(?<!\\)\\[nt]", token.text)
            else None
        ),
    )


def newline_in_key(rng: Rng, tokens: Tokens, document: Any) -> tuple[str, Any] | None:
    keys = places(tokens, "key")
    if not keys:
        return None
    at = rng.choice(keys)
    valid = drop(tokens, at, '"' + inner(tokens[at]) + '\\nb"')
    return drop(tokens, at, '"' + inner(tokens[at]) + '\nb"'), json.loads(valid)


def literals_in_any_case(rng: Rng, tokens: Tokens, document: Any) -> str | None:
    none = rng.choice(["NONE", "Null", "NULL"])
    words = {"true": "TRUE", "false": "FALSE", "null": none}
    return edit(rng, tokens, "literal", lambda token: words[token.text])


def number_forms(rng: Rng, tokens: Tokens, document: Any) -> str | None:
    def change(token: Token) -> str | None:
        text = token.text
        if text.startswith("0."):
            return text[1:]
        if re.fullmatch(r"[1-9]\d{3}", text):
            return rng.choice([text[0] + "_" + text[1:], hex(int(text)), "+" + text])
        return "+" + text if text[0] != "-" else None

    return edit(rng, tokens, "number", change, share=0.6)


def python(rng: Rng, tokens: Tokens, document: Any) -> str:
    return repr(document)


def unquoted_keys(rng: Rng, tokens: Tokens, document: Any) -> str | None:
    return edit(rng, tokens, "key", inner, share=rng.choice([0.3, 1.0]))


def key_quote(rng: Rng, tokens: Tokens, document: Any) -> str | None:
    keys = places(tokens, "key")
    if not keys:
        return None
    at = rng.choice(keys)
    return drop(tokens, at, tokens[at].text[1:] if rng.random() < 0.5 else tokens[at].text[:-1])


def bare_value(rng: Rng, tokens: Tokens, document: Any) -> str | None:
    words = [i for i in places(tokens, "string") if inner(tokens[i]) in WORDS]
    if not words:
        return None
    at = rng.choice(words)
    return drop(tokens, at, inner(tokens[at]))


def trailing_commas(rng: Rng, tokens: Tokens, document: Any) -> str | None:
    out, changed = "", False
    last = ""
    for token in tokens:
        if token.kind == "close" and last not in "{[" and rng.random() < 0.6:
            out, changed = out + ",", True
        out += token.text
        last = token.text if token.kind != "space" else last
    return out if changed else None


def comments(rng: Rng, tokens: Tokens, document: Any) -> str | None:
    note = rng.choice(_POOLS["comments"])
    forms = [f" /* {note} */ ", f" // {note}\n", f" # {note}\n", f"<!-- {note} -->"]
    return edit(
        rng, tokens, "comma colon open", lambda token: token.text + rng.choice(forms), share=0.2
    )


def separators(rng: Rng, tokens: Tokens, document: Any) -> str | None:
    mark = rng.choice([" =>", " =", "=", "：", " :="])
    if rng.random() < 0.3:
        return edit(rng, tokens, "comma", lambda token: rng.choice([";", "，"]))
    return edit(rng, tokens, "colon", lambda token: mark, share=rng.choice([0.3, 1.0]))


def tuples(rng: Rng, tokens: Tokens, document: Any) -> str | None:
    text = re.sub(r"\[([^\[\]{}\"]+,[^\[\]{}\"]+)\]", r"(\1)", join(tokens))
    text = re.sub(r'\[(\s*"[\w ]+"(?:,\s*"[\w ]+")+\s*)\]', rng.choice([r"(\1)", r"{\1}"]), text)
    return text if text != join(tokens) and text[0] in "{[" else None


def split_strings(rng: Rng, tokens: Tokens, document: Any) -> str | None:
    def change(token: Token) -> str | None:
        if token.role != "member" or " " not in inner(token) or "\\" in token.text:
            return None
        left, right = inner(token).split(" ", 1)
        glue = rng.choice(['" + "', '"\n  "', '" "', '" +\n "'])
        return f'"{left} {glue}{right}"'

    return edit(rng, tokens, "string", change, share=0.3)


def missing_comma(rng: Rng, tokens: Tokens, document: Any) -> str | None:
    fit = [i for i in places(tokens, "comma") if tokens[i].role == "member"]
    if not fit:
        return None
    at = rng.choice(fit)
    return drop(tokens, at, "" if tokens[at + 1].kind == "space" else " ")


def missing_colon(rng: Rng, tokens: Tokens, document: Any) -> str | None:
    colons = places(tokens, "colon")
    return drop(tokens, rng.choice(colons), " ") if colons else None


def surplus_closer(rng: Rng, tokens: Tokens, document: Any) -> str | None:
    return join(tokens) + rng.choice(["}", "\n}", "}\n}"]) if isinstance(document, dict) else None


def missing_last_brace(rng: Rng, tokens: Tokens, document: Any) -> str | None:
    if not isinstance(document, dict) or not document:
        return None
    last = list(document.values())[-1]
    if isinstance(last, dict | int | float) and not isinstance(last, bool):
        return None
    return join(tokens[:-1]).rstrip()


def inner_quotes(rng: Rng, tokens: Tokens, document: Any) -> str | None:
    def change(token: Token) -> str | None:
        words = inner(token).split(" ")
        if len(words) < 3 or not all(word.isalpha() for word in words):
            return None
        at = rng.randrange(1, len(words) - 1)
        return '"' + " ".join([*words[:at], f'\\"{words[at]}\\"', *words[at + 1 :]]) + '"'

    return edit(rng, tokens, "string", change, share=0.3)


def backslashes(rng: Rng, tokens: Tokens, document: Any) -> str | None:
    forms = _POOLS["backslashes"]

    def change(token: Token) -> str | None:
        return json.dumps(rng.choice(forms)) if inner(token).isalpha() else None

    return edit(rng, tokens, "string", change, share=0.3)


def from_valid(damage: Damage, undo: Callable[[str], str]) -> Damage:
    """Make a damage whose value is read from valid JSON that `undo` then spoils."""

    def apply(rng: Rng, tokens: Tokens, document: Any) -> tuple[str, Any] | None:
        valid = damage(rng, tokens, document)
        return None if valid is None else (undo(str(valid)), json.loads(str(valid)))

    return apply


def hex_escapes(rng: Rng, tokens: Tokens, document: Any) -> str | None:
    return edit(
        rng,
        tokens,
        "string",
        lambda token: (
            '"\\x' + format(ord(inner(token)[0]), "02x") + inner(token)[1:] + '"'
            if inner(token)[:1].isascii() and inner(token)[:1].isalpha()
            else None
        ),
        share=0.4,
    )


def triple_quotes(rng: Rng, tokens: Tokens, document: Any) -> str | None:
    return edit(
        rng,
        tokens,
        "string",
        lambda token: (
            f'"""{token.text[1:-1]}"""' if '"' not in inner(token) and inner(token) else None
        ),
        share=0.5,
    )


def line_continuations(rng: Rng, tokens: Tokens, document: Any) -> str | None:
    return edit(
        rng,
        tokens,
        "string",
        lambda token: token.text.replace(" ", " \\\n", 1) if " " in token.text else None,
        share=0.4,
    )


def odd_spaces(rng: Rng, tokens: Tokens, document: Any) -> str | None:
    space = rng.choice("\u00a0\u3000\u2009\u202f\u200b\ufeff")
    return edit(rng, tokens, "colon comma", lambda token: token.text + space, share=0.4)


def full_width(rng: Rng, tokens: Tokens, document: Any) -> str | None:
    table = str.maketrans("{}[]:,", "｛｝［］：，")
    return edit(
        rng,
        tokens,
        "open close colon comma",
        lambda token: token.text.translate(table),
        share=rng.choice([0.3, 1.0]),
    )


def repeated_key(rng: Rng, tokens: Tokens, document: Any) -> str | None:
    if not isinstance(document, dict) or not document:
        return None
    key = rng.choice(sorted(document))
    return join(tokens[:-1]).rstrip() + f", {json.dumps(key)}: {json.dumps(document[key])}" + "}"


def doubled_quotes(rng: Rng, tokens: Tokens, document: Any) -> str:
    return csv_field(rng, join(tokens))


def missing_bracket(rng: Rng, tokens: Tokens, document: Any) -> str | None:
    """Take off the bracket of an array of several plain values before a brace or a key."""
    fit = []
    for i in places(tokens, "close"):
        if tokens[i].text != "]" or tokens[i].role != "element":
            continue
        opening = max(
            (
                j
                for j, token in enumerate(tokens[:i])
                if token.text == "[" and token.kind == "open" and token.depth == tokens[i].depth
            ),
            default=0,
        )
        inside = tokens[opening + 1 : i]
        plain = all(
            token.kind in ("string", "number", "literal", "comma", "space") for token in inside
        )
        is_long = any(token.kind == "comma" for token in inside)
        if plain and is_long and opening and tokens[opening].role == "member":
            fit.append(i)
    return drop(tokens, rng.choice(fit)) if fit else None


INSIDE: dict[str, Damage] = {
    "single quotes": single_quotes,
    "single quotes, bare": single_quotes_bare,
    "smart quotes": lambda r, t, d: requote(r, t, "“", "”", r"[“”]|\\\""),
    "smart single quotes": lambda r, t, d: requote(r, t, "‘", "’", "[‘’']"),
    "low quotes": lambda r, t, d: requote(r, t, "„", "“", r"[“”„]|\\\""),
    "back quotes": lambda r, t, d: requote(r, t, "`", "`", "[`$]"),
    "triple quotes": triple_quotes,
    "unquoted keys": unquoted_keys,
    "key quote": key_quote,
    "bare value": bare_value,
    "trailing commas": trailing_commas,
    "comments": comments,
    "separators": separators,
    "number forms": number_forms,
    "python": python,
    "literals in any case": literals_in_any_case,
    "tuples and sets": tuples,
    "joined strings": split_strings,
    "missing comma": missing_comma,
    "missing colon": missing_colon,
    "missing last brace": missing_last_brace,
    "missing bracket": missing_bracket,
    "surplus closer": surplus_closer,
    "raw newlines": raw_newlines,
    "newline in key": newline_in_key,
    "inner quotes": from_valid(
        inner_quotes, lambda text: re.sub(r'(?<=[a-z ])\\"([a-z]+)\\"(?=[ a-z])', r'"\1"', text)
    ),
    "kept backslashes": from_valid(
        backslashes, lambda text: re.sub(r"\\\\(?=[dswSWDQUn(.)])", r"\\", text)
    ),
    "hex escapes": hex_escapes,
    "line continuations": line_continuations,
    "odd spaces": odd_spaces,
    "full width": full_width,
    "repeated key": repeated_key,
    "doubled quotes": doubled_quotes,
}
EMPTY = _POOLS["empty"]

# What must be refused; `MARK` stands at the fault.


def cut(rng: Rng, tokens: Tokens, document: Any) -> tuple[str, str] | None:
    kept = [i for i, token in enumerate(tokens) if token.kind != "space" and i > 0]
    at = rng.choice(kept)
    token = tokens[at]
    head, part = join(tokens[:at]), token.text
    if token.kind in ("key", "string"):
        return head + MARK + part[: rng.randint(1, len(part) - 1)], "truncated"
    if token.kind in ("number", "literal") and len(part) > 1:
        return head + part[: rng.randint(1, len(part) - 1)] + MARK, "truncated"
    if token.kind == "colon":
        return head + part + MARK, "truncated"
    if token.kind == "comma":
        return head + part + MARK, "truncated"
    if token.kind == "open" and at > 2:
        return head + part + MARK, "truncated"
    return None


def value_at(rng: Rng, tokens: Tokens, new: str, *, kinds: str, role: str) -> str | None:
    """Put `new` in the place of one value."""
    fit = [i for i in places(tokens, *kinds.split()) if not role or tokens[i].role == role]
    return drop(tokens, rng.choice(fit), new) if fit else None


def bad_values(pool: str, *, role: str = "", kinds: str = "string number literal") -> Damage:
    def apply(rng: Rng, tokens: Tokens, document: Any) -> tuple[str, str] | None:
        written = rng.choice(_POOLS[pool])
        marked = written.replace("{fault}", MARK) if "{fault}" in written else MARK + written
        text = value_at(rng, tokens, marked, kinds=kinds, role=role)
        return None if text is None else (text, "not_json")

    return apply


def elided(rng: Rng, tokens: Tokens, document: Any) -> tuple[str, str] | None:
    commas = places(tokens, "comma")
    if not commas:
        return None
    at = rng.choice(commas)
    form = rng.choice(_POOLS["elided"])
    return drop(tokens, at, f", {MARK}{form}" + ("," if form[0] == "." else "")), "not_json"


def conflicting(rng: Rng, tokens: Tokens, document: Any) -> tuple[str, str] | None:
    if not isinstance(document, dict) or not document:
        return None
    key = rng.choice(sorted(document))
    return (
        join(tokens[:-1]).rstrip() + f', {MARK}{json.dumps(key)}: "other {rng.randrange(9)}"' + "}",
        "duplicate_key",
    )


def second(rng: Rng, tokens: Tokens, document: Any) -> tuple[str, str]:
    other = rng.choice(_POOLS["second"])
    between = rng.choice(["\n", " ", "\n\n", ", ", "\nor\n", "\n```\n\n```json\n"])
    text = join(tokens) + between + MARK + other
    if "```" in between:
        text = "```json\n" + text + "\n```"
    return text, "multiple_objects"


def first_empty(rng: Rng, tokens: Tokens, document: Any) -> tuple[str, str]:
    return rng.choice(["{}", "[]", "[1, 2]"]) + rng.choice(["\n", " ", ", "]) + MARK + join(
        tokens
    ), "multiple_objects"


def constructed(rng: Rng, tokens: Tokens, document: Any) -> tuple[str, str]:
    return in_template(rng, "constructed", join(tokens)).replace("{fault}", MARK), "not_json"


def lost_value(rng: Rng, tokens: Tokens, document: Any) -> tuple[str, str] | None:
    fit = [i for i in places(tokens, "string", "number", "literal") if tokens[i].role == "member"]
    if not fit:
        return None
    at = rng.choice(fit)
    behind = next_token(tokens, at)
    return join(tokens[:at]) + join(tokens[at + 1 : behind]) + MARK + join(
        tokens[behind:]
    ), "not_json"


def lost_quote(rng: Rng, tokens: Tokens, document: Any) -> tuple[str, str] | None:
    """Take off the closing quote of a member's value that is followed by another key."""
    fit = [
        i
        for i in places(tokens, "string")
        if tokens[i].role == "member"
        and tokens[next_token(tokens, i)].kind == "comma"
        and '"' not in inner(tokens[i])
    ]
    if not fit:
        return None
    at = rng.choice(fit)
    return drop(tokens, at, MARK + tokens[at].text[:-1]), "not_json"


def strings_beside(rng: Rng, tokens: Tokens, document: Any) -> tuple[str, str] | None:
    fit = [
        i
        for i in places(tokens, "comma")
        if tokens[i].role == "element"
        and tokens[i - 1].kind == "string"
        and tokens[next_token(tokens, i)].kind == "string"
        # Two names, or two lines, are two strings; prose may go on in the next one.
        and " " in tokens[i - 1].text
        and "\n" not in tokens[i + 1].text
    ]
    if not fit:
        return None
    at = rng.choice(fit)
    behind = next_token(tokens, at)
    return join(tokens[:at]) + " " + join(tokens[at + 1 : behind]) + MARK + join(
        tokens[behind:]
    ), "not_json"


def stray_mark(rng: Rng, tokens: Tokens, document: Any) -> tuple[str, str] | None:
    commas = places(tokens, "comma", "colon")
    if not commas:
        return None
    at = rng.choice(commas)
    return drop(tokens, at, tokens[at].text + MARK + tokens[at].text), "not_json"


def wrong_closer(rng: Rng, tokens: Tokens, document: Any) -> tuple[str, str] | None:
    return join(tokens[:-1]) + MARK + ")", "not_json"


def open_thought(rng: Rng, tokens: Tokens, document: Any) -> tuple[str, str]:
    return MARK + rng.choice(_POOLS["open_thoughts"]) + join(tokens), "truncated"


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


def open_comment(rng: Rng, tokens: Tokens, document: Any) -> tuple[str, str] | None:
    commas = places(tokens, "comma")
    if not commas:
        return None
    at = rng.choice(commas)
    return join(tokens[: at + 1]) + f" {MARK}/* the " + join(tokens[at + 1 :]), "truncated"


REFUSED: dict[str, Damage] = {
    "cut": cut,
    "elision": elided,
    "conflicting key": conflicting,
    "second answer": second,
    "empty before": first_empty,
    "constructor around": constructed,
    "half escaped": bad_values("half_escaped"),
    "inner quote and mark": bad_values("inner_with_mark", kinds="string"),
    "lost value": lost_value,
    "lost closing quote": lost_quote,
    "strings beside": strings_beside,
    "stray mark": stray_mark,
    "wrong closer": wrong_closer,
    "open thought": open_thought,
    "no answer": no_answer,
    "open comment": open_comment,
    "no number": bad_values("no_number"),
    "grouped number": bad_values("grouped_number", role="member"),
    "no value": bad_values("no_value"),
    "constructor": bad_values("constructor"),
}


def draw(rng: Rng) -> tuple[Tokens, Any]:
    drawn = document(rng)
    return tokens_of(write(rng, drawn)), drawn


def _recoverable(kind: str, rng: Rng) -> Damaged | None:
    tokens, drawn = draw(rng)
    if kind == "empty":
        text = rng.choice(EMPTY)
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
    if isinstance(done, str):
        return Damaged(kind, done, drawn)
    return Damaged(kind, done[0], done[1])


def _unusable(kind: str, rng: Rng) -> Damaged | None:
    tokens, drawn = draw(rng)
    done = REFUSED[kind](rng, tokens, drawn)
    if done is None:
        return None
    text, error_type = str(done[0]), str(done[1])
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
    """Run what the command line asks for."""
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

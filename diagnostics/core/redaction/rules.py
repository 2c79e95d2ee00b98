"""The rule set: a data file, compiled once; all rules are tried in one pass."""

import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import re2

from diagnostics.core.redaction.checks import CHECKS

RULES_FILE = Path(__file__).with_name("rules.toml")
SET_MEMORY_BYTES = 64 << 20


@dataclass(frozen=True, slots=True)
class Rule:
    """One family of secrets; `pattern` is RE2, group 1 or the whole match is masked."""

    id: str
    kind: str
    pattern: str
    check: str | None = None
    positive: tuple[str, ...] = ()
    negative: tuple[str, ...] = ()


class BadRuleError(ValueError):
    """the rule does not compile under RE2"""


class RuleSet:
    """Rules compiled together; `find` is linear in the length of the text."""

    def __init__(self, rules: Sequence[Rule]) -> None:
        """Compile; raises BadRuleError naming the first rule that does not."""
        self._rules = [_compile(rule) for rule in rules]
        self._filter = re2.Set.SearchSet(_options())
        for rule in rules:
            self._filter.Add(rule.pattern.encode())
        self._filter.Compile()

    def find(self, body: bytes) -> Iterator[tuple[int, int, str]]:
        """Yield (start, end, kind) of what to mask in an ASCII view."""
        if not self._rules:
            return
        for index in sorted(self._filter.Match(body) or ()):
            pattern, kind, is_secret = self._rules[index]
            for found in pattern.finditer(body):
                group = 1 if found.re.groups and found.span(1)[0] >= 0 else 0
                if is_secret is None or is_secret(found.group(group)):
                    yield (*found.span(group), kind)


@cache
def load_rules() -> tuple[Rule, ...]:
    """Read the rules that ship with the product."""
    content = tomllib.loads(RULES_FILE.read_text(encoding="utf-8"))
    return tuple(_read(table, content["words"]) for table in content["rule"])


@cache
def load_rule_set() -> RuleSet:
    """Compile the rules that ship with the product, once."""
    return RuleSet(load_rules())


def _read(table: dict[str, Any], words: dict[str, str]) -> Rule:
    pattern: str = table["pattern"]
    for word, meaning in words.items():
        pattern = pattern.replace(f"{{{word}}}", meaning)
    return Rule(
        id=table["id"],
        kind=table["kind"],
        pattern=pattern,
        check=table.get("check"),
        positive=tuple(table["positive"]),
        negative=tuple(table["negative"]),
    )


def _options() -> Any:  # noqa: ANN401 - the binding has no types
    options = re2.Options()
    options.log_errors = False
    options.max_mem = SET_MEMORY_BYTES
    return options


Compiled = tuple[Any, str, Callable[[bytes], bool] | None]


def _compile(rule: Rule) -> Compiled:
    try:
        pattern = re2.compile(rule.pattern.encode(), _options())
    except re2.error as error:
        raise BadRuleError(f"{rule.id}: {BadRuleError.__doc__}") from error
    return pattern, rule.kind, CHECKS[rule.check] if rule.check else None

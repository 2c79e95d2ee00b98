"""Words of a query as conditions of SQL, where an event and its details are joined."""

from collections.abc import Iterable, Mapping

from diagnostics.core.query_language import Word
from diagnostics.queries.narrowing import SEARCHED, SEARCHED_DETAIL

TEXTS = {"told": "validation_errors::text"}
"""What is searched of the details as text, where it is none."""
FOUND = "strpos(upper({text}), upper(%(word_{place})s)) > 0"


def write_words(words: Iterable[Word], event: str, details: str) -> str:
    """Write `AND ...` for each word; they are the parameters `word_<place>`.

    `event` and `details` name the joined tables. The same columns are searched as where
    `diagnostics.queries.narrowing` asks single events.
    """
    columns = ", ".join(f"{event}.{name}" for name in SEARCHED)
    texts = [f"concat_ws(E'\\x1f', {columns})"]
    texts += [f"{details}.{TEXTS.get(name, name)}" for name in SEARCHED_DETAIL]
    return " ".join(f"AND {_write_word(texts, place, word)}" for place, word in enumerate(words))


def ask_words(words: Iterable[Word]) -> Mapping[str, str]:
    """Give the parameters that `write_words` names."""
    return {f"word_{place}": word.text for place, word in enumerate(words)}


def _write_word(texts: Iterable[str], place: int, word: Word) -> str:
    found = " OR ".join(FOUND.format(text=text, place=place) for text in texts)
    return f"NOT coalesce({found}, false)" if word.is_negated else f"({found})"

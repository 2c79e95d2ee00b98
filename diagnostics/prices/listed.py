"""Prices from the list that genai-prices ships, kept as rows.

The list costs a process 40 MB and 0.4 s. It is loaded only where a model is met that it was
not asked about in this edition: by a worker, once; what it does not know is a row as well.
"""

import importlib
from collections.abc import Iterator
from datetime import date
from decimal import Decimal
from importlib.metadata import version
from itertools import islice
from typing import NamedTuple

from diagnostics.prices.models import Price
from diagnostics.store.models import Series

LIST = "genai_prices"
EDITION = f"genai-prices {version('genai-prices')}"
ALWAYS = date(2000, 1, 1)
ASKED_TOKENS = 1_000
"""Few, so that the price of short prompts is told where long ones cost more."""
MOST_AT_ONCE = 500
LONGEST_PROVIDER, LONGEST_MODEL = 100, 200


class ListPrice(NamedTuple):
    """US dollars for a million tokens; None where the list knows no such model."""

    input_per_million: Decimal | None
    output_per_million: Decimal | None


def look_up_prices() -> int:
    """Ask the list about models it was not asked about yet; returns how many."""
    unknown = list(_unknown())
    if not unknown:
        return 0
    rows = [
        Price(
            project_id=project_id,
            provider=provider,
            model=model,
            origin=Price.Origin.LISTED,
            valid_from=ALWAYS,
            edition=EDITION,
            **ask_list(provider, model)._asdict(),
        )
        for project_id, provider, model in unknown
    ]
    Price.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["project", "provider", "model", "origin", "valid_from"],
        update_fields=["input_per_million", "output_per_million", "edition"],
    )
    return len(rows)


def ask_list(provider: str, model: str) -> ListPrice:
    """Return the listed price of a model; a provider that the list does not know has none."""
    listed = importlib.import_module(LIST)
    usage = listed.Usage(input_tokens=ASKED_TOKENS, output_tokens=ASKED_TOKENS)
    try:
        found = listed.calc_price(usage, model_ref=model, provider_id=provider)
    except LookupError:
        return ListPrice(None, None)
    scale = Decimal(1_000_000) / ASKED_TOKENS
    return ListPrice(found.input_price * scale, found.output_price * scale)


def _unknown() -> Iterator[tuple[int, str, str]]:
    """Return the models that were counted and not asked about in this edition."""
    asked = set(
        Price.objects.filter(origin=Price.Origin.LISTED, edition=EDITION).values_list(
            "project_id", "provider", "model"
        )
    )
    keys = Series.objects.values_list("project_id", "provider", "model").distinct()
    fresh = (key for key in keys if key not in asked)
    named = ((p, by, of) for p, by, of in fresh if by and of and _fits(by, of))
    yield from islice(named, MOST_AT_ONCE)


def _fits(provider: str, model: str) -> bool:
    return len(provider) <= LONGEST_PROVIDER and len(model) <= LONGEST_MODEL

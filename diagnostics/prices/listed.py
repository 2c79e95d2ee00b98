"""Prices from the list that genai-prices ships, kept as rows.

The list costs a process 40 MB and 0.4 s. A worker loads it only for a model that was not looked
up in this edition; a model that it lacks gets a row as well.
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
"""Few, to get the price of short prompts where long ones cost more."""
MOST_AT_ONCE = 500
LONGEST_PROVIDER, LONGEST_MODEL = 100, 200


class ListPrice(NamedTuple):
    """US dollars per million tokens; None if the list lacks the model."""

    input_per_million: Decimal | None
    output_per_million: Decimal | None


def look_up_prices() -> int:
    """Look up the prices of new models; return how many."""
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
            **listed_price(provider, model)._asdict(),
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


def listed_price(provider: str, model: str) -> ListPrice:
    """Return the listed price of a model; empty for a provider that the list lacks."""
    listed = importlib.import_module(LIST)
    usage = listed.Usage(input_tokens=ASKED_TOKENS, output_tokens=ASKED_TOKENS)
    try:
        price = listed.calc_price(usage, model_ref=model, provider_id=provider)
    except LookupError:
        return ListPrice(None, None)
    scale = Decimal(1_000_000) / ASKED_TOKENS
    return ListPrice(price.input_price * scale, price.output_price * scale)


def _unknown() -> Iterator[tuple[int, str, str]]:
    """Yield the counted models that were not looked up in this edition."""
    known = set(
        Price.objects.filter(origin=Price.Origin.LISTED, edition=EDITION).values_list(
            "project_id", "provider", "model"
        )
    )
    keys = Series.objects.values_list("project_id", "provider", "model").distinct()
    unlisted = (key for key in keys if key not in known)
    named_models = (
        (project_id, provider, model)
        for project_id, provider, model in unlisted
        if provider and model and len(provider) <= LONGEST_PROVIDER and len(model) <= LONGEST_MODEL
    )
    yield from islice(named_models, MOST_AT_ONCE)

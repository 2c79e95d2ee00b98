"""Prices per million tokens of a model, from a day on."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from diagnostics.accounts.models import Project
from diagnostics.analysis.series import ModelKey
from diagnostics.constraints import NamedRow, check, known, unique


class PriceOrigin(models.TextChoices):
    """The origin of a price; a custom one overrides a listed one."""

    OWN = "own"
    LISTED = "listed"


class Price(NamedRow):
    """A custom or listed price of a model."""

    named = "{0.provider}/{0.model} from {0.valid_from}"
    Origin = PriceOrigin

    project = models.ForeignKey(Project, models.CASCADE, related_name="prices", db_index=False)
    provider = models.CharField(max_length=100)
    model = models.CharField(max_length=200)
    origin = models.CharField(max_length=8, choices=Origin, default=Origin.OWN)
    # Null if the list lacks the model, so that it is not looked up again.
    input_per_million = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)
    output_per_million = models.DecimalField(max_digits=12, decimal_places=6, null=True, blank=True)
    currency = models.CharField(max_length=3, default="USD")
    # The first day (UTC) on which it applies, until the next one of the same origin.
    valid_from = models.DateField()
    # The edition of the list, or the demo's mark; empty for a custom price.
    edition = models.CharField(max_length=64, blank=True, default="")
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering = ["provider", "model", "-valid_from"]
        constraints = [
            # Read by every sum of money: all prices of a project.
            unique("diagnostics_price_once_a_day", "project provider model origin valid_from"),
            known("diagnostics_price_origin_known", "origin", PriceOrigin),
            check("diagnostics_price_in_usd", Q(currency="USD")),
            check(
                "diagnostics_price_is_a_price",
                Q(
                    input_per_million__isnull=False,
                    output_per_million__isnull=False,
                    input_per_million__gte=0,
                    output_per_million__gte=0,
                )
                | Q(
                    origin="listed", input_per_million__isnull=True, output_per_million__isnull=True
                ),
            ),
        ]


MILLION = Decimal(1_000_000)


@dataclass(frozen=True, slots=True)
class TokenPrice:
    """US dollars per million tokens, from a day (UTC) on."""

    valid_from: date
    input_per_million_usd: Decimal
    output_per_million_usd: Decimal
    is_own: bool = True

    def of(self, input_tokens: int, output_tokens: int) -> Decimal:
        return (
            self.input_per_million_usd * input_tokens + self.output_per_million_usd * output_tokens
        ) / MILLION


def price_on(prices: Iterable[TokenPrice], day: date) -> TokenPrice | None:
    """Return the price that applies on a day, None without one."""
    valid = [price for price in prices if price.valid_from <= day]
    return max(valid, key=lambda price: (price.is_own, price.valid_from), default=None)


PRICED = ("provider", "model", "valid_from", "input_per_million", "output_per_million", "origin")
Prices = Mapping[ModelKey, Sequence[TokenPrice]]


def prices_of(project_id: int) -> Prices:
    """Return every price of a project by model, in one query."""
    prices: dict[ModelKey, list[TokenPrice]] = defaultdict(list)
    known = Price.objects.filter(
        project_id=project_id, input_per_million__isnull=False, output_per_million__isnull=False
    )
    for *model, day, read, written, origin in known.values_list(*PRICED):
        price = TokenPrice(day, read, written, origin == Price.Origin.OWN)
        prices[model[0], model[1]].append(price)
    return prices

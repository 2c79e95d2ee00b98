"""Prices per million tokens of a model, from a day on."""

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from diagnostics.accounts.models import Project
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

"""The cause of a degradation, and what is said of it."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum

from diagnostics.verdict.cells import Dimensions

LEAST_CALLS = 20


class Cause(StrEnum):
    """The cause of a degradation, as named in the API."""

    PROVIDER_OUTAGE = "provider_outage"
    MODEL = "model"
    PROMPT = "prompt"
    SCHEMA = "schema"
    RELEASE = "release"
    SOURCE = "source"
    PAIR = "pair"
    SERVED = "served"
    VALIDATOR = "validator"
    ENVIRONMENT = "environment"
    REGION = "region"
    UPSTREAM = "upstream"
    CREDENTIAL = "credential"
    MIXED = "mixed"
    NOT_ENOUGH_DATA = "not_enough_data"


VERSIONS = (Cause.PROMPT, Cause.SCHEMA, Cause.RELEASE)
"""Causes that are a version of ours."""


@dataclass(frozen=True, slots=True)
class ExcessShare:
    """The share of the excess that one value of a dimension has, and its share of calls."""

    dimension: str
    value: str
    share: float
    traffic_share: float

    @property
    def lift(self) -> float | None:
        """The share of the excess over the share of calls; None without calls."""
        return self.share / self.traffic_share if self.traffic_share else None


@dataclass(frozen=True, slots=True)
class Finding:
    """The cause of an excess; `cause` is None if there is no excess."""

    cause: Cause | None
    value: str = ""
    excess: float = 0.0
    top_kind: str = ""
    risen: tuple[str, ...] = ()
    """The kinds that make up the excess, the largest first."""
    prompts: int = 0
    """Prompt versions with failures beyond the expected."""
    models: int = 0
    """Models with failures beyond the expected, of those that the cause touches."""
    called_models: int = 0
    """All models that the cause touches."""
    shares: tuple[ExcessShare, ...] = ()
    touches: Callable[[Dimensions], bool] = field(default=lambda _: True)
    alternatives: tuple[tuple[Cause, str], ...] = ()
    """The two likeliest causes and their values, if the counts cannot tell them apart."""
    came_together: bool = False
    """Whether the alternatives have the same calls."""
    is_new: bool = False
    """Whether the cause is a version that started with the excess."""
    is_compared: bool = True
    """Whether calls that the cause does not touch are well, as a comparison."""
    is_theirs: bool = True
    """Whether calls of the same versions of ours elsewhere are well: it is not us."""
    probability: float = 1.0
    """The posterior probability of the cause."""
    place: str = ""
    """In words, the environment or node that the cause is limited to."""

"""The cause of a degradation, and what is said of it."""

from collections.abc import Callable, Mapping
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
OURS = (*VERSIONS, Cause.SOURCE, Cause.VALIDATOR, Cause.ENVIRONMENT, Cause.CREDENTIAL)
"""Causes that are not on the side of the provider."""


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


@dataclass(frozen=True, slots=True)
class CauseWords:
    """What is said of a cause: its noun, its sentence, and the advice with its evidence."""

    noun: str
    sentence: str
    advice: str
    evidence: str
    uncompared: str = ""
    """The evidence without comparable calls."""
    looks: str = ""
    """The beginning of its sentence; empty for "Looks like" and the noun."""


VERSION_SENTENCE = "{words} {value}: {models} affected."
PLACE_SENTENCE = "{words} {value}: its calls fail more, at {models}."
CAUSES: Mapping[Cause, CauseWords] = {
    Cause.PROVIDER_OUTAGE: CauseWords(
        "the provider",
        "{words}{place}{not_us}.",
        "Route plans to another provider until calls are answered again.",
        "All models of this provider are affected",
        looks="Looks like an outage of the provider",
    ),
    Cause.MODEL: CauseWords(
        "the model",
        "{words}{place}{not_us}{versions}.",
        "Route plans to another model until this one recovers.",
        "Only calls to this model are above baseline",
        looks="Looks like the model or provider",
    ),
    Cause.PROMPT: CauseWords(
        "our prompt",
        VERSION_SENTENCE,
        "Restore the previous prompt version, or correct this one.",
        "Only calls with the new version fail more",
        "It began with the new version; too few good calls with another one to compare with",
    ),
    Cause.SCHEMA: CauseWords(
        "our schema",
        VERSION_SENTENCE,
        "Restore the previous schema version, or describe the change in the prompt.",
        "Only answers to the new version fail more",
        "It began with the new version; too few good answers to another one to compare with",
    ),
    Cause.RELEASE: CauseWords(
        "our release",
        VERSION_SENTENCE,
        "Roll the release back, or check what it changed.",
        "Only calls of this release fail more",
        "It began with the release; too few good calls of another one to compare with",
    ),
    Cause.SOURCE: CauseWords(
        "the source",
        "{words} {value} fail more, at {models}; no new version began with it.",
        "Check what changed in this source: settings, inputs, a deploy that was not reported.",
        "Only calls from this source fail more",
        "No version of it is new; too few good calls from another source to compare with",
        looks="Looks like us: calls of",
    ),
    Cause.PAIR: CauseWords(
        "the pair",
        "{words} {value}.",
        "Call one without the other for a few runs. For a provider, check key and quota.",
        "Only calls that have both fail more",
        "Too few good calls that have only one of them to compare with",
        looks="Only together they fail more:",
    ),
    Cause.SERVED: CauseWords(
        "the answering model",
        "{words} calls answered by {value} fail more.",
        "Pin the model at the gateway, or ask for it without a fallback.",
        "Only calls that are answered by another model or host fail more",
        "It began when another model or host answered; too few other good calls to compare with",
        looks="Looks like what answers, not the model that was asked for:",
    ),
    Cause.VALIDATOR: CauseWords(
        "our validator",
        "{words}{node}: {hit} fail more.",
        "Check what changed in the validation of answers and in the registered tools.",
        "The failures are of one kind, whatever the model",
        "Calls of all models are affected; too few good calls to compare with",
        looks="Looks like our validator or its tools",
    ),
    Cause.ENVIRONMENT: CauseWords(
        "the environment",
        PLACE_SENTENCE,
        "Check what changed in this environment: network, proxy, settings, credentials.",
        "Only calls from this environment fail more",
        "Too few good calls of another environment to compare with",
        looks="Looks like our environment or its network",
    ),
    Cause.REGION: CauseWords(
        "the region",
        PLACE_SENTENCE,
        "Send the calls of this region to another one, or check what changed there.",
        "Only calls of this region fail more",
        "Too few good calls of another region to compare with",
    ),
    Cause.UPSTREAM: CauseWords(
        "the upstream",
        "{words} {value}: calls that it answers fail more, at {models}.",
        "Exclude this upstream at the router, or pin another one.",
        "Only calls that it answers fail more",
        "Too few good calls answered by another upstream to compare with",
    ),
    Cause.CREDENTIAL: CauseWords(
        "the credential",
        PLACE_SENTENCE,
        "Check this key at the provider: is it revoked or out of quota? Replace it in its source.",
        "Only calls with this credential fail more",
        "Too few good calls with another credential to compare with",
    ),
}
"""What is said of each cause that can be named."""

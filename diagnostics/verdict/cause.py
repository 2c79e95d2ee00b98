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
    part: tuple[float, float] | None = None
    """The shares of the excess and of the calls that its calls have."""
    has_new_version: bool = False
    """Whether a version started around the onset in its calls."""


@dataclass(frozen=True, slots=True)
class CauseWords:
    """What is said of a cause: its noun, its sentence, and the advice with its evidence."""

    noun: str
    sentence: str
    advice: str
    evidence: str
    """Which calls have the failures."""
    uncompared: str = ""
    """The evidence without comparable calls."""
    looks: str = ""
    """The beginning of its sentence; empty for "Looks like" and the noun."""


ITS_CALLS = "{words} {value}: its calls fail more, at {models}."
CAUSES: Mapping[Cause, CauseWords] = {
    Cause.PROVIDER_OUTAGE: CauseWords(
        "the provider",
        "{words}{place}{not_us}.",
        "Route plans to another provider until calls are answered again.",
        "Calls to this provider",
        looks="Looks like an outage of the provider",
    ),
    Cause.MODEL: CauseWords(
        "the model",
        "{words}{place}{not_us}{versions}.",
        "Route plans to another model until this one recovers.",
        "Calls to this model",
        looks="Looks like the model or provider",
    ),
    Cause.PROMPT: CauseWords(
        "our prompt",
        ITS_CALLS,
        "Restore the previous version of this prompt if there is one, or correct this one.",
        "Calls with this version",
        "It began with the new version; too few good calls with another one to compare with",
    ),
    Cause.SCHEMA: CauseWords(
        "our schema",
        ITS_CALLS,
        "Restore the previous version of this schema if there is one, or correct this one.",
        "Calls with this version",
        "It began with the new version; too few good answers to another one to compare with",
    ),
    Cause.RELEASE: CauseWords(
        "our release",
        ITS_CALLS,
        "Roll this release back if there was one before it, or check what it changed.",
        "Calls of this release",
        "It began with the release; too few good calls of another one to compare with",
    ),
    Cause.SOURCE: CauseWords(
        "the source",
        "{words} {value} fail more, at {models}{nothing_new}.",
        "Check what changed in this source: settings, inputs, a deploy that was not reported.",
        "Calls from this source",
        "Too few good calls from another source to compare with",
        looks="Looks like us: calls of",
    ),
    Cause.PAIR: CauseWords(
        "the pair",
        "{words} {value}.",
        "Call one without the other for a few runs.",
        "Calls with both",
        "Too few good calls that have only one of them to compare with",
        looks="Only together they fail more:",
    ),
    Cause.SERVED: CauseWords(
        "the answering model",
        "{words} calls answered by {value} fail more.",
        "Pin the model at the gateway, or ask for it without a fallback.",
        "Calls that it answers",
        "It began when another model or host answered; too few other good calls to compare with",
        looks="Looks like what answers, not the model that was asked for:",
    ),
    Cause.VALIDATOR: CauseWords(
        "our validator",
        "{words}{node}: {hit} fail more.",
        "Check what changed in the validation of answers and in the registered tools.",
        "Calls of this node",
        "Too few good calls elsewhere to compare with",
        looks="Looks like our validator or its tools",
    ),
    Cause.ENVIRONMENT: CauseWords(
        "the environment",
        "Looks like our environment {value} or its network: its calls fail more, at {models}.",
        "Check what changed in this environment: network, proxy, settings, credentials.",
        "Calls from this environment",
        "Too few good calls of another environment to compare with",
        looks="Looks like our environment or its network",
    ),
    Cause.REGION: CauseWords(
        "the region",
        ITS_CALLS,
        "Send the calls of this region to another one, or check what changed there.",
        "Calls of this region",
        "Too few good calls of another region to compare with",
    ),
    Cause.UPSTREAM: CauseWords(
        "the upstream",
        "{words} {value}: calls that it answers fail more, at {models}.",
        "Exclude this upstream at the router, or pin another one.",
        "Calls that it answers",
        "Too few good calls answered by another upstream to compare with",
    ),
    Cause.CREDENTIAL: CauseWords(
        "the credential",
        ITS_CALLS,
        "Check this key at the provider: is it revoked or out of quota? Replace it in its source.",
        "Calls with this credential",
        "Too few good calls with another credential to compare with",
    ),
}
"""What is said of each cause that can be named."""


def name_cause(finding: Finding) -> str:
    """Return the name of a cause for its calls: `acme/m-1`, `source web`, `node plan`."""
    cause = finding.cause or Cause.MIXED
    noun = CAUSES[cause].noun.partition(" ")[2]
    if cause in (Cause.MODEL, Cause.PROVIDER_OUTAGE):
        noun = ""
    elif cause is Cause.VALIDATOR:
        noun = "node"
    return f"{noun} {finding.value}{finding.place}".lstrip()

"""The body of a posted deploy (docs/http-api.md)."""

from enum import StrEnum
from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints

from failsoft.events import PlausibleTime, Short


class DeployKind(StrEnum):
    """What was changed."""

    RELEASE = "release"
    PROMPT = "prompt"
    SCHEMA = "schema"
    VALIDATOR = "validator"


class ObservedKind(StrEnum):
    """Observed changes of what answers a model's calls; no agent reports them."""

    MODEL = "observed_model"
    UPSTREAM = "observed_upstream"
    FINGERPRINT = "observed_fingerprint"


class PostedDeploy(BaseModel):
    """One change; reporting it again changes nothing."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    at: PlausibleTime
    kind: DeployKind
    source: Short | None = None
    environment: Short | None = None
    version: Short
    note: Annotated[str, StringConstraints(max_length=2000)] = ""

"""Every setting of the product: environment over file over default.

The file is TOML or JSON, named by `FAILSOFT_CONFIG`; its keys are the field names below.
`FAILSOFT_ENV_FILE` names a file of more environment variables; those that are set win.
Without a database URL, the settings of the running one-machine stack are used.
"""

import base64
import json
import os
import re
import secrets
import sys
from collections.abc import Iterable, Mapping, Set
from difflib import get_close_matches
from functools import cache, partial
from pathlib import Path
from tomllib import TOMLDecodeError, loads
from typing import Annotated, Any, Literal

from dotenv import dotenv_values
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    SecretStr,
    ValidationError,
    model_validator,
)
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from config.addresses import (
    BrokerAddress,
    DatabaseAddress,
    HttpAddress,
    HttpOrigin,
    MailAddress,
    PingAddress,
)
from config.mail import quote_sender
from config.retry import NAMES, settle_retry
from config.runtime import read_runtime
from failsoft import VERSION
from plans.tools.server_settings import read_servers

WORKING_KEY_BYTES = 32
SECRET_KEY_CHARACTERS = 32
# Unknown names with these prefixes are refused as typing errors.
PREFIXES = ("FAILSOFT_", "CCOS_", "ROBOPPI_")
QUOTES = ("'", '"')
# Read outside of Configuration: by its sources, by clients, by completion checks.
OTHER_NAMES = (
    "FAILSOFT_CONFIG",
    "FAILSOFT_ENV_FILE",
    "FAILSOFT_URL",
    "FAILSOFT_KEY",
    "FAILSOFT_API_KEY",
    "FAILSOFT_COMPLETION_CHECK_ID",
    "ROBOPPI_COMPLETION_CHECK_ID",
    "FAILSOFT_DECISION_FILE",
    "FAILSOFT_ITERATION",
    *(name for names in NAMES.values() for name in names),
)
# Set by Kubernetes in every pod for a service whose name begins with `failsoft`.
SERVICE_LINK = re.compile(r".*_(SERVICE_(HOST|PORT)|PORT)(_[A-Z0-9_]+)?")


class ConfigurationError(Exception):
    """A setting is invalid; the message names its key and the expected value."""


class FileError(Exception):
    """The configuration file does not exist or is invalid; the message names it."""


def _example_checks(fields: dict[str, Any]) -> dict[str, list[str]]:
    """Return the checks of the example workflows; none on a server."""
    if fields["database_url"] and not fields["local_stack"]:
        return {}
    folder = Path(__file__).resolve().parent.parent / "examples/checks"
    return {path.stem: [sys.executable, str(path)] for path in sorted(folder.glob("*.py"))}


def _reference(value: str) -> str:
    if value and not value.startswith(("env:", "file:")):
        raise ValueError("must be env:NAME or file:/path, never the secret itself")
    return value


def _decode(value: object) -> object:
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError as error:
        raise ValueError(f"must be a JSON object: {error}") from None


def _split_by_comma(value: object) -> object:
    if isinstance(value, str):
        return [item.strip() for item in value.split(",") if item.strip()]
    return value


def _absolute(value: list[str]) -> list[str]:
    if not all(Path(folder).is_absolute() for folder in value):
        raise ValueError("must be absolute paths, separated by commas")
    return value


def _commands(value: dict[str, list[str]]) -> dict[str, list[str]]:
    if not all(name and argv and argv[0] for name, argv in value.items()):
        raise ValueError("must map names to lists of a program and its arguments")
    return value


def _references(value: dict[str, list[str]]) -> dict[str, list[str]]:
    return {slug: [_reference(item) for item in items] for slug, items in value.items()}


def _long(value: SecretStr) -> SecretStr:
    if 0 < len(value.get_secret_value()) < SECRET_KEY_CHARACTERS:
        raise ValueError(f"must have at least {SECRET_KEY_CHARACTERS} characters")
    return value


def _key(value: SecretStr) -> SecretStr:
    try:
        size = len(base64.b64decode(value.get_secret_value(), validate=True))
    except ValueError:
        size = 0
    if value.get_secret_value() and size != WORKING_KEY_BYTES:
        raise ValueError(f"must be base64 of {WORKING_KEY_BYTES} random bytes")
    return value


def _aliases(value: dict[str, str]) -> dict[str, str]:
    if not all(text.strip() for pair in value.items() for text in pair):
        raise ValueError("must map spellings to names, none of them blank")
    return value


def _servers(value: dict[str, Any]) -> dict[str, Any]:
    read_servers(value)
    return value


Json = BeforeValidator(_decode)
Commands = Annotated[dict[str, list[str]], Json, AfterValidator(_commands)]
Credentials = Annotated[dict[str, list[str]], Json, AfterValidator(_references)]
Aliases = Annotated[dict[str, str], Json, AfterValidator(_aliases)]
RetryPolicy = Annotated[dict[str, Any], Json, AfterValidator(partial(settle_retry, env=os.environ))]
McpServers = Annotated[dict[str, Any], Json, AfterValidator(_servers)]
Words = Annotated[list[str], BeforeValidator(_split_by_comma)]


class Configuration(BaseSettings):
    """All settings, validated at startup."""

    model_config = SettingsConfigDict(
        env_prefix="FAILSOFT_",
        extra="forbid",
        frozen=True,
        populate_by_name=True,
        enable_decoding=False,
    )

    database_url: DatabaseAddress = Field(default="", validation_alias="database_url")
    broker_url: BrokerAddress = Field(default="", validation_alias="broker_url")
    secret_key: Annotated[SecretStr, AfterValidator(_long)] = SecretStr("")
    working_key: Annotated[SecretStr, AfterValidator(_key)] = SecretStr("")
    base_url: HttpOrigin = "http://127.0.0.1:8000"
    allowed_hosts: Words = []
    data_dir: Path = Path(".local")
    debug: bool = False
    model_url: HttpAddress = ""
    model_key: SecretStr = SecretStr("")
    allow_scripted: bool = False
    http_allow_private: bool = False
    # The folders of credential files.
    secret_dirs: Annotated[Words, AfterValidator(_absolute)] = ["/run/secrets"]
    # What administrators of a project may reference, by its slug.
    project_credentials: Credentials = {}
    redact_emails: bool = False
    mcp_servers: McpServers = {}
    local_stack: bool = False
    # The commands that completion checks may run, by name.
    check_commands: Commands = Field(default_factory=_example_checks)
    workspace_dir: Path | None = None
    # The retention of raw values in the working store after their owner has ended.
    working_keep_hours: int = Field(default=24, ge=0, le=24 * 30)
    # The retention of events (as long as their ids, at least), details, counts (docs/storage.md).
    keep_payload_days: int = Field(default=30, ge=1, le=3650)
    keep_event_days: int = Field(default=90, ge=8, le=3650)
    # The time for which pages cache a verdict.
    verdict_seconds: int = Field(default=10, ge=0, le=300)
    keep_report_days: int = Field(default=400, ge=1, le=3650)
    keep_minute_hours: int = Field(default=48, ge=48, le=24 * 62)
    keep_evaluation_days: int = Field(default=30, ge=1, le=366)
    keep_hour_months: int = Field(default=13, ge=3, le=120)
    static_hashed: bool = True
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    email_url: MailAddress = ""
    email_from: Annotated[str, AfterValidator(quote_sender)] = "failsoft@localhost"
    # Requested after each evaluation of alerts; the receiver alerts when requests stop.
    ping_url: PingAddress = ""
    # The recipient of `check_alerter`, mailed without queue and worker.
    alerter_mail: str = ""
    require_mfa: bool = True
    trusted_proxies: int = Field(default=0, ge=0, le=10)
    oidc_issuer: HttpAddress = ""
    oidc_name: str = Field(default="Single sign-on", min_length=1, max_length=40)
    oidc_client_id: str = ""
    oidc_client_secret: Annotated[str, AfterValidator(_reference)] = ""
    oidc_allowed_domains: Words = []
    # Whether an address counts of which the issuer does not say whether it is verified.
    oidc_trust_email: bool = False
    database_pool_size: int = Field(default=0, ge=0, le=100)
    # Simultaneous requests of one web process; more wait on its event loop.
    web_threads: int = Field(default=4, ge=1, le=64)
    task_soft_limit_seconds: int = Field(default=540, ge=1)
    task_hard_limit_seconds: int = Field(default=600, ge=1)
    broker_visibility_seconds: int = Field(default=1800, ge=1)
    # The environment of goals that are planned by this installation.
    environment: str = Field(default="", max_length=100)
    # The deployed release; a run is pinned to it.
    release: str = Field(default=VERSION, min_length=1, max_length=64)
    # The time after the last heartbeat of a worker until its runs and steps are recovered.
    run_lease_seconds: float = Field(default=60, ge=2, le=3600, allow_inf_nan=False)
    # Parallel steps of one inline run.
    run_parallel_steps: int = Field(default=4, ge=1, le=64)
    plan_retry: RetryPolicy = Field(default={}, validate_default=True)
    breaker_threshold: int = Field(default=5, ge=1, le=1000)
    # The first cool-down; later ones are up to eight times as long.
    breaker_cool_down_seconds: float = Field(default=10.0, ge=0.1, le=3600, allow_inf_nan=False)
    # Default quotas of projects, in events; 0 is no limit.
    key_events_per_second: int = Field(default=10_000, ge=0, le=10_000_000)
    key_burst_events: int = Field(default=100_000, ge=1_000, le=100_000_000)
    events_per_day: int = Field(default=0, ge=0, le=10**12)
    events_per_month: int = Field(default=0, ge=0, le=10**12)
    spike_events_per_minute: int = Field(default=300_000, ge=0, le=10**9)
    # The number of refused requests and items that are kept for a project.
    rejects_kept: int = Field(default=1_000, ge=0, le=100_000)
    breaker_policy: Literal["single_attempt", "deny"] = "single_attempt"
    # A fix pattern expires after this time without a new success.
    fix_pattern_expiry_days: int = Field(default=30, ge=1, le=3650)
    # Other spellings of providers and models, with the name that their series have.
    provider_aliases: Aliases = {}
    model_aliases: Aliases = {}
    # The share of runs without fix patterns, for comparison.
    fix_pattern_withheld_percent: int = Field(default=20, ge=0, le=100)

    @model_validator(mode="after")
    def _server_brings_its_keys(self) -> "Configuration":
        needed = ("secret_key", "working_key", "broker_url") if self.database_url else ()
        missing = [env_name(name) for name in needed if not _plain(getattr(self, name))]
        if missing:
            raise ValueError(f"DATABASE_URL also needs {', '.join(missing)}")
        return self

    def by_variable(self, *, without: Set[str]) -> dict[str, Any]:
        """Return all values by environment variable, with secrets in plain text."""
        fields = Configuration.model_fields.keys() - without
        return {env_name(field): _plain(getattr(self, field)) for field in fields}

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Order the sources: arguments, environment, file, running local stack."""
        try:
            values = read_config_file(os.environ.get("FAILSOFT_CONFIG"))
        except FileError as error:
            raise ConfigurationError(f"FAILSOFT_CONFIG: {error}") from None
        file_settings = InitSettingsSource(settings_cls, init_kwargs=values)
        sources = (init_settings, env_settings, file_settings)
        if any(source().get("database_url") for source in sources):
            return sources
        return (*sources, InitSettingsSource(settings_cls, init_kwargs=read_runtime()))


def read_config_file(path: str | None) -> dict[str, Any]:
    """Return the content of a file, TOML or JSON by its suffix; empty without a path.

    Raises FileError.
    """
    if not path:
        return {}
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
        content = json.loads(text) if file.suffix == ".json" else loads(text)
    except OSError as error:
        raise FileError(f"{path}: {error.strerror}") from None
    except (TOMLDecodeError, json.JSONDecodeError, UnicodeDecodeError) as error:
        raise FileError(f"{path}: {error}") from None
    if not isinstance(content, dict):
        raise FileError(f"{path}: expected an object")
    return content


def _plain(value: object) -> object:
    return value.get_secret_value() if isinstance(value, SecretStr) else value


def env_name(field: str) -> str:
    """Return the environment variable that sets `field`."""
    bare = field in {"database_url", "broker_url"}
    return field.upper() if bare else f"FAILSOFT_{field.upper()}"


def _explain_fault(place: tuple[int | str, ...], fault: Mapping[str, Any]) -> str:
    message = str(fault["msg"]).removeprefix("Value error, ")
    if not place:
        return message
    key, file = str(place[0]), os.environ.get("FAILSOFT_CONFIG")
    if fault["type"] == "extra_forbidden":
        message = f"unknown setting{_nearest(key, Configuration.model_fields)}"
    is_in_file = not os.environ.get(env_name(key)) and key in read_config_file(file)
    return f"{file}: {key}: {message}" if is_in_file else f"{env_name(key)}: {message}"


def _nearest(name: str, names: Iterable[str]) -> str:
    return "".join(f"; did you mean {match}?" for match in get_close_matches(name, names, 1))


def _read_environment_file() -> None:
    path = os.environ.get("FAILSOFT_ENV_FILE")
    if not path:
        return
    try:
        with Path(path).open(encoding="utf-8") as file:
            values = dotenv_values(stream=file, interpolate=False)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "this is not UTF-8"
        raise ConfigurationError(f"FAILSOFT_ENV_FILE: {path}: {reason}") from None
    for name, value in values.items():
        if not os.environ.get(name, "").strip():
            os.environ[name] = value or ""


def _clean_environment(names: Set[str]) -> None:
    """Remove blank variables and outer white space, which files of secrets end with.

    Docker's `--env-file` keeps quotes, which shells and systemd remove: they are refused.
    """
    for name in names & os.environ.keys():
        value = os.environ.pop(name).strip()
        if value[:1] in QUOTES and value[0] == value[-1]:
            raise ConfigurationError(f"{name}: must be written without quotes around the value")
        if value:
            os.environ[name] = value


def load_configuration(**overrides: Any) -> Configuration:
    """Return all settings, validated; ConfigurationError names the invalid key."""
    _read_environment_file()
    known_names = {*map(env_name, Configuration.model_fields), *OTHER_NAMES}
    for name in sorted(set(os.environ) - known_names):
        if name.startswith(PREFIXES) and not SERVICE_LINK.fullmatch(name):
            raise ConfigurationError(f"{name} is unknown{_nearest(name, known_names)}")
    _clean_environment(known_names)
    try:
        return Configuration(**overrides)
    except ValidationError as error:
        faults = error.errors(include_input=False, include_url=False)
        # Reported for a default that depends on invalid fields.
        errors = [fault for fault in faults if fault["type"] != "default_factory_not_called"]
        messages = (_explain_fault(fault["loc"], fault) for fault in errors)
        raise ConfigurationError("; ".join(messages)) from None


@cache
def configuration() -> Configuration:
    """Return the settings of this process, read once; an invalid one ends it with one line."""
    try:
        return load_configuration()
    except ConfigurationError as error:
        sys.exit(f"Settings: {error}")


def random_working_key() -> str:
    """Return a fresh working-store key, base64 of 32 random bytes."""
    return base64.b64encode(secrets.token_bytes(WORKING_KEY_BYTES)).decode()

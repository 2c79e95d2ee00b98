"""The default retry policy: environment over file over default."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from failsoft.retry.policy import ATTEMPT_NAMES, PRESETS, RetryConfig

PRESET = "preset"
# Aliases of one option; if several are set, they must agree.
NAMES = {
    PRESET: ("FAILSOFT_PLAN_RETRY_PRESET",),
    "max_retries": (
        "FAILSOFT_MAX_PLAN_RETRIES",
        "FAILSOFT_MAX_ATTEMPTS",
        "FAILSOFT_MAX_RETRIES",
        "CCOS_MAX_PLAN_RETRIES",
    ),
    "send_error_feedback": ("FAILSOFT_PLAN_RETRY_FEEDBACK", "CCOS_PLAN_RETRY_FEEDBACK"),
    "simplify_on_final_attempt": ("FAILSOFT_PLAN_RETRY_SIMPLIFY",),
    "use_stub_fallback": ("FAILSOFT_PLAN_STUB_FALLBACK", "CCOS_PLAN_STUB_FALLBACK"),
}
# All options as one JSON object.
WHOLE = "FAILSOFT_PLAN_RETRY"
TRUE, FALSE = {"1", "true", "yes", "on"}, {"0", "false", "no", "off"}
MAX_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Layer:
    """Values of one source, such as `file` or the name of a variable."""

    source: str
    values: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class Setting:
    """One effective value and where it comes from."""

    option: str
    value: object
    source: str


def settle_retry(file: Mapping[str, Any], env: Mapping[str, str]) -> dict[str, Any]:
    """Return the whole policy; ValueError names the invalid key."""
    layers = layers_of(file, env)
    try:
        policy = RetryConfig.from_layers(*(layer.values for layer in layers))
    except ValidationError as error:
        fault = error.errors(include_input=False, include_url=False)[0]
        key = ".".join(str(part) for part in fault["loc"])
        names = ", ".join(NAMES.get(key, ()))
        location = f"{key} ({names})" if names else key
        raise ValueError(f"{location}: {fault['msg']}") from None
    return policy.model_dump()


def trace_retry(file: Mapping[str, Any], env: Mapping[str, str]) -> list[Setting]:
    """Return each option with its value and source; ValueError names the invalid key."""
    layers = layers_of(file, env)
    return [
        Setting(option, value, _source_of(option, layers))
        for option, value in settle_retry(file, env).items()
    ]


def layers_of(file: Mapping[str, Any], env: Mapping[str, str]) -> list[Layer]:
    """Return the sources, weakest first; a preset is weaker than explicit options."""
    return [*_from_section("plan_retry", file), *_from_env(env)]


def _from_section(source: str, section: Mapping[str, Any]) -> Iterator[Layer]:
    rest = {key: value for key, value in section.items() if key != PRESET}
    if PRESET in section:
        yield _read_preset(f"{source}.{PRESET}", section[PRESET])
    yield Layer(source, rest)


def _from_env(env: Mapping[str, str]) -> Iterator[Layer]:
    if env.get(WHOLE):
        yield from _from_section(WHOLE, _read_object(env[WHOLE]))
    for field, names in NAMES.items():
        values = {name: _read(name, env[name]) for name in names if env.get(name)}
        if len(set(values.values())) > 1:
            raise ValueError(f"{' and '.join(values)} are one setting and must agree")
        for name, value in list(values.items())[:1]:
            is_preset = field == PRESET
            yield _read_preset(name, value) if is_preset else Layer(name, {field: value})


def _read_preset(name: str, value: object) -> Layer:
    if not isinstance(value, str) or value not in PRESETS:
        raise ValueError(f"{name} must be one of {', '.join(PRESETS)}")
    # A preset sets all four options: those that it omits use their defaults.
    options = RetryConfig.model_validate(PRESETS[value]).model_dump()
    return Layer(f"{name} {value}", options)


def _read_object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{WHOLE} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise ValueError(f"{WHOLE} must be a JSON object")  # noqa: TRY004 - a bad value
    return value


def _read(name: str, text: str) -> int | bool | str:
    word = text.strip().lower()
    if name in NAMES[PRESET]:
        return word
    if name in NAMES["max_retries"]:
        if not word.isdecimal() or len(word) > MAX_DIGITS:
            raise ValueError(f"{name} must be a whole number from 1 to 5")
        return int(word)
    if word not in TRUE | FALSE:
        raise ValueError(f"{name} must be true or false")
    return word in TRUE


def _source_of(option: str, layers: Iterable[Layer]) -> str:
    names = ATTEMPT_NAMES if option in ATTEMPT_NAMES else (option,)
    sources = [layer.source for layer in layers if any(name in layer.values for name in names)]
    return sources[-1] if sources else "default"

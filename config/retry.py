"""The default retry policy: environment over file over default (X-2, S1-23 to S1-28)."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from agents.core.retry import RetryConfig

# Several names of one value; given more than once, they must agree.
NAMES = {
    "max_retries": (
        "FAILSOFT_MAX_ATTEMPTS",
        "FAILSOFT_MAX_RETRIES",
        "CCOS_MAX_PLAN_RETRIES",
    ),
    "send_error_feedback": ("FAILSOFT_PLAN_RETRY_FEEDBACK", "CCOS_PLAN_RETRY_FEEDBACK"),
    "use_stub_fallback": ("FAILSOFT_PLAN_STUB_FALLBACK", "CCOS_PLAN_STUB_FALLBACK"),
}
TRUE, FALSE = {"1", "true", "yes", "on"}, {"0", "false", "no", "off"}


def _read(name: str, text: str) -> int | bool:
    word = text.strip().lower()
    if "MAX" in name:
        if not word.isdecimal():
            raise ValueError(f"{name} must be a whole number")
        return int(word)
    if word not in TRUE | FALSE:
        raise ValueError(f"{name} must be true or false")
    return word in TRUE


def _from_env(env: Mapping[str, str]) -> dict[str, object]:
    layer: dict[str, object] = {}
    for field, names in NAMES.items():
        given = {name: _read(name, env[name]) for name in names if env.get(name)}
        if len(set(given.values())) > 1:
            raise ValueError(f"{' and '.join(given)} are one setting and must agree")
        if given:
            layer[field] = next(iter(given.values()))
    return layer


def settle_retry(file: Mapping[str, Any], env: Mapping[str, str]) -> dict[str, Any]:
    """Return the whole policy; raises ValueError that names the wrong key."""
    try:
        return RetryConfig.from_layers(file, _from_env(env)).model_dump()
    except ValidationError as error:
        fault = error.errors(include_input=False, include_url=False)[0]
        key = ".".join(str(part) for part in fault["loc"])
        names = ", ".join(NAMES.get(key, ()))
        where = f"{key} ({names})" if names else key
        raise ValueError(f"{where}: {fault['msg']}") from None

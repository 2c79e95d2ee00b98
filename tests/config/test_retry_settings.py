"""The retry settings of a process: files, variables, presets, and the command that shows them."""

import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from config.configuration import ConfigurationError, load_configuration
from config.retry import NAMES, settle_retry, trace_retry
from failsoft.retry.policy import MAX_ATTEMPTS_CEILING, PRESETS, RetryConfig

TOP = Path(__file__).resolve().parent.parent.parent
DEFAULTS = {
    "max_retries": 2,
    "send_error_feedback": True,
    "simplify_on_final_attempt": True,
    "use_stub_fallback": False,
}
SWITCHES = [
    (name, field)
    for field in ("send_error_feedback", "simplify_on_final_attempt", "use_stub_fallback")
    for name in NAMES[field]
]


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for names in NAMES.values():
        for name in names:
            monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("FAILSOFT_PLAN_RETRY", raising=False)
    monkeypatch.delenv("FAILSOFT_CONFIG", raising=False)


def write(folder: Path, name: str, text: str) -> str:
    """Write a configuration file and give its path."""
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def show() -> dict[str, dict[str, object]]:
    """What the command prints, by option."""
    output = StringIO()
    call_command("show_retry", "--json", stdout=output)
    shown: dict[str, dict[str, object]] = json.loads(output.getvalue())
    return shown


@pytest.mark.slow
def test_s1_2_and_s1_68_and_s1_73_a_fresh_installation_shows_the_documented_defaults() -> None:
    env = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("FAILSOFT_", "CCOS_", "DATABASE_", "BROKER_"))
    }
    result = subprocess.run(
        [sys.executable, "manage.py", "show_retry"],
        cwd=TOP,
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )

    assert result.stdout.splitlines() == [
        "max_retries = 2  (default)",
        "send_error_feedback = true  (default)",
        "simplify_on_final_attempt = true  (default)",
        "use_stub_fallback = false  (default)",
    ]


@pytest.mark.parametrize("name", NAMES["max_retries"])
@pytest.mark.parametrize("number", [1, 3, MAX_ATTEMPTS_CEILING])
def test_s1_23_and_s1_67_every_name_of_the_number_sets_it(name: str, number: int) -> None:
    assert settle_retry({}, {name: str(number)}) == DEFAULTS | {"max_retries": number}


@pytest.mark.parametrize(("name", "field"), SWITCHES)
@pytest.mark.parametrize("value", [True, False])
def test_s1_24_and_s1_25_and_s1_67_every_switch_goes_on_and_off(
    name: str, field: str, *, value: bool
) -> None:
    words = ("true", "1", "yes", "on") if value else ("false", "0", "no", "off")

    settled = [settle_retry({}, {name: word}) for word in words]

    assert settled == [DEFAULTS | {field: value}] * 4


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("failsoft.toml", "[plan_retry]\nmax_retries = 4\nuse_stub_fallback = true\n"),
        ("failsoft.json", '{"plan_retry": {"max_retries": 4, "use_stub_fallback": true}}'),
    ],
)
def test_s1_26_a_toml_and_a_json_file_change_the_policy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str, text: str
) -> None:
    monkeypatch.setenv("FAILSOFT_CONFIG", write(tmp_path, name, text))
    expected = DEFAULTS | {"max_retries": 4, "use_stub_fallback": True}

    assert load_configuration().plan_retry == expected
    shown = show()
    assert {option: item["value"] for option, item in shown.items()} == expected
    assert shown["max_retries"]["source"] == "plan_retry"
    assert shown["send_error_feedback"]["source"] == "default"


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ('{"plan_retry": {"max_tries": 3}}', "max_tries"),
        ('{"plan_retry": {"max_retries": 6}}', "max_retries"),
        ('{"plan_retry": {"max_retries": "3"}}', "max_retries"),
        ('{"plan_retry": {"send_error_feedback": 1}}', "send_error_feedback"),
        ('{"plan_retry": {"max_retries": 3, "max_attempts": 2}}', "different values"),
        ('{"plan_retry": {"preset": "fast"}}', "plan_retry.preset"),
        ('{"plan_retry": {"preset": ["dev"]}}', "plan_retry.preset"),
        ('{"plan_retry": 3}', "plan_retry"),
        ('{"plan_retry": ', "line 1 column"),
        ("[]", "expected an object"),
    ],
)
def test_s1_26_a_bad_file_is_refused_at_the_start_with_the_key_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, named: str
) -> None:
    monkeypatch.setenv("FAILSOFT_CONFIG", write(tmp_path, "failsoft.json", text))

    with pytest.raises(ConfigurationError, match=named):
        load_configuration()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CCOS_MAX_PLAN_RETRIES", "1000000000"),
        ("CCOS_MAX_PLAN_RETRIES", "9" * 5_000),
        ("CCOS_MAX_PLAN_RETRIES", "0"),
        ("CCOS_MAX_PLAN_RETRIES", "-1"),
        ("CCOS_MAX_PLAN_RETRIES", "2.5"),
        ("FAILSOFT_MAX_PLAN_RETRIES", "6"),
    ],
)
def test_s1_75_a_number_without_bounds_stops_the_start(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(name, value)

    with pytest.raises(ConfigurationError, match=name):
        load_configuration()


@pytest.mark.parametrize("text", ["{bad", "[1]", '"dev"', '{"max_tries": 1}'])
def test_a_bad_object_stops_the_start(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv("FAILSOFT_PLAN_RETRY", text)

    with pytest.raises(ConfigurationError, match=r"(?i)plan_retry"):
        load_configuration()


def test_the_object_of_the_environment_wins_over_the_file_whole(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = write(tmp_path, "failsoft.toml", "[plan_retry]\nmax_retries = 4\n")
    monkeypatch.setenv("FAILSOFT_CONFIG", file)
    monkeypatch.setenv("FAILSOFT_PLAN_RETRY", '{"max_attempts": 3}')

    assert load_configuration().plan_retry["max_retries"] == 3
    assert show()["max_retries"]["source"] == "FAILSOFT_PLAN_RETRY"


@pytest.mark.parametrize(
    "name", ["CCOS_MAX_PLAN_RETRY", "FAILSOFT_PLAN_RETRY_FEEDBACKS", "CCOS_PLAN_STUB"]
)
def test_a_misspelt_variable_stops_the_start(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "1")

    with pytest.raises(ConfigurationError, match=f"{name} is unknown"):
        load_configuration()


@pytest.mark.parametrize("names", NAMES.values(), ids=list(NAMES))
def test_twins_may_agree_and_may_not_differ(names: tuple[str, ...]) -> None:
    if len(names) == 1:
        return
    agreed, other = ("3", "2") if "MAX" in names[0] else ("on", "off")

    settle_retry({}, dict.fromkeys(names, agreed))
    with pytest.raises(ValueError, match="are one setting and must agree"):
        settle_retry({}, {**dict.fromkeys(names, agreed), names[0]: other})


def test_s1_66_three_presets_differ_and_are_valid() -> None:
    settled = {name: settle_retry({}, {"FAILSOFT_PLAN_RETRY_PRESET": name}) for name in PRESETS}

    assert {name: policy["max_retries"] for name, policy in settled.items()} == {
        "dev": 3,
        "prod": 2,
        "cost-conscious": 1,
    }
    assert settled["prod"] == RetryConfig().model_dump()


ORDER = [
    # the file's section, the environment, the number of calls, where it comes from
    ({"preset": "dev"}, {}, 3, "plan_retry.preset dev"),
    ({"preset": "dev", "max_retries": 4}, {}, 4, "plan_retry"),
    (
        {"max_retries": 4},
        {"FAILSOFT_PLAN_RETRY_PRESET": "prod"},
        2,
        "FAILSOFT_PLAN_RETRY_PRESET prod",
    ),
    (
        {"max_retries": 4},
        {"FAILSOFT_PLAN_RETRY_PRESET": "prod", "CCOS_MAX_PLAN_RETRIES": "5"},
        5,
        "CCOS_MAX_PLAN_RETRIES",
    ),
    ({"max_attempts": 4}, {}, 4, "plan_retry"),
    ({"max_retries": 4}, {"FAILSOFT_PLAN_RETRY": '{"max_attempts": 3}'}, 3, "FAILSOFT_PLAN_RETRY"),
    (
        {"max_retries": 4},
        {"FAILSOFT_PLAN_RETRY": '{"preset": "dev"}'},
        3,
        "FAILSOFT_PLAN_RETRY.preset dev",
    ),
    # An empty variable is one that is not set.
    ({"max_retries": 4}, {"CCOS_MAX_PLAN_RETRIES": ""}, 4, "plan_retry"),
]


@pytest.mark.parametrize(("file", "env", "number", "source"), ORDER)
def test_s1_28_the_stronger_source_wins_and_is_named(
    file: dict[str, object], env: dict[str, str], number: int, source: str
) -> None:
    setting = {item.option: item for item in trace_retry(file, env)}["max_retries"]

    assert (setting.value, setting.source) == (number, source)


def test_the_command_refuses_what_a_start_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CCOS_PLAN_STUB_FALLBACK", "perhaps")

    with pytest.raises(CommandError, match="CCOS_PLAN_STUB_FALLBACK"):
        call_command("show_retry")

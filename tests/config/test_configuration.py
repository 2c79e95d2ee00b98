import base64
import os
import random
import ssl
import subprocess
import sys
from pathlib import Path

import pytest
from kombu import Connection

from config.configuration import (
    Configuration,
    ConfigurationError,
    env_name,
    load_configuration,
    random_working_key,
)
from config.runtime import write_runtime


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("DATABASE_URL", "BROKER_URL", "FAILSOFT_CONFIG"):
        monkeypatch.delenv(name, raising=False)
    for field in Configuration.model_fields:
        monkeypatch.delenv(f"FAILSOFT_{field.upper()}", raising=False)
    monkeypatch.setenv("FAILSOFT_DATA_DIR", str(tmp_path))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """The settings that a server must have."""
    generator = random.Random(7)
    monkeypatch.setenv("DATABASE_URL", "postgresql://failsoft@127.0.0.1/failsoft")
    monkeypatch.setenv("BROKER_URL", "amqp://127.0.0.1")
    monkeypatch.setenv("FAILSOFT_SECRET_KEY", generator.randbytes(32).hex())
    key = base64.b64encode(generator.randbytes(32)).decode()
    monkeypatch.setenv("FAILSOFT_WORKING_KEY", key)
    return monkeypatch


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("FAILSOFT_BASE_URL", "failsoft.example.org", "must be an http://"),
        ("FAILSOFT_BASE_URL", "ftp://example.org", "must be an http://"),
        ("FAILSOFT_BASE_URL", "https://example.org/failsoft", "never below a path"),
        ("FAILSOFT_BASE_URL", "https://example.org?x=1", "never below a path"),
        ("FAILSOFT_WORKING_KEY", "c2hvcnQ=", "must be base64 of 32"),
        ("FAILSOFT_WORKING_KEY", "not base64!", "must be base64 of 32"),
        ("FAILSOFT_SECRET_KEY", "short", "at least 32 characters"),
        ("DATABASE_URL", "mysql://127.0.0.1/x", "must begin with postgresql://"),
        ("BROKER_URL", "sqs://", "must begin with redis://"),
        ("BROKER_URL", "redis://user:1#2@broker.example.org/0", "as %XX"),
        ("BROKER_URL", "redis://user:1/2@broker.example.org/0", "as %XX"),
        ("BROKER_URL", "amqp://user:a?b@broker.example.org/failsoft", "as %XX"),
        ("BROKER_URL", "redis://broker.example.org/queues", "number of a database"),
        ("FAILSOFT_LOG_LEVEL", "CHATTY", "'DEBUG', 'INFO'"),
        ("FAILSOFT_DEBUG", "perhaps", "valid boolean"),
        ("FAILSOFT_DATABASE_POOL_SIZE", "-1", "greater than or equal to 0"),
        ("FAILSOFT_EMAIL_URL", "pigeon://", "must begin with smtp://"),
        ("FAILSOFT_EMAIL_URL", "mail.example.org", "must begin with smtp://"),
        ("FAILSOFT_PING_URL", "https://ping.example.org:99999", "port from 0 to 65535"),
        ("FAILSOFT_BASE_URL", "https://failsoft.example.org:web", "port from 0 to 65535"),
        ("FAILSOFT_MODEL_URL", "http://[::1", "must have a host"),
        ("BROKER_URL", "redis://broker.example.org:port/0", "port from 0 to 65535"),
        ("FAILSOFT_MCP_SERVERS", "{", "must be a JSON object"),
        ("FAILSOFT_MODEL_ALIASES", "[1]", "valid dictionary"),
        ("FAILSOFT_CONFIG", "/" + "long" * 100, "File name too long"),
        ("FAILSOFT_CONFIG", "/tmp", "Is a directory"),  # noqa: S108 - any folder
        ("FAILSOFT_EMAIL_URL", "smtp://user:1#2@mail.example.org", "as %XX"),
        ("FAILSOFT_EMAIL_URL", "smtps://user:1/2@mail.example.org", "as %XX"),
        ("FAILSOFT_EMAIL_URL", "smtp+tls://user:a?b@mail.example.org:587", "as %XX"),
        ("FAILSOFT_EMAIL_FROM", "Failsoft", "such as Failsoft <alerts@example.org>"),
        ("FAILSOFT_EMAIL_FROM", "a@example.org, b@example.org", "such as Failsoft <"),
        ("FAILSOFT_EMAIL_FROM", "jörg@example.org", "in ASCII"),
        ("FAILSOFT_BREAKER_THRESHOLD", "0", "greater than or equal to 1"),
        ("FAILSOFT_BREAKER_THRESHOLD", "five", "valid integer"),
        ("FAILSOFT_BREAKER_COOL_DOWN_SECONDS", "0", "greater than or equal to 0.1"),
        ("FAILSOFT_BREAKER_COOL_DOWN_SECONDS", "nan", "finite number"),
        ("FAILSOFT_BREAKER_POLICY", "ignore", "'single_attempt' or 'deny'"),
    ],
)
def test_a_bad_value_is_refused_with_the_name_of_its_key(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, expected: str
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError) as refusal:
        load_configuration()
    line = str(refusal.value)
    assert line.startswith(f"{name}: ")
    assert expected in line
    assert "\n" not in line


@pytest.mark.parametrize("text", ["", " "])
@pytest.mark.parametrize("field", sorted(Configuration.model_fields))
def test_a_blank_variable_counts_as_not_set(
    monkeypatch: pytest.MonkeyPatch, field: str, text: str
) -> None:
    monkeypatch.delenv("FAILSOFT_DATA_DIR")
    default = getattr(load_configuration(), field)
    monkeypatch.setenv(env_name(field), text)
    assert getattr(load_configuration(), field) == default


def test_white_space_around_a_value_is_no_part_of_it(server: pytest.MonkeyPatch) -> None:
    plain = load_configuration()
    for name in ("DATABASE_URL", "BROKER_URL", "FAILSOFT_SECRET_KEY", "FAILSOFT_WORKING_KEY"):
        server.setenv(name, f" {os.environ[name]}\r\n")
    assert load_configuration() == plain


@pytest.mark.parametrize("mark", ["'", '"'])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FAILSOFT_EMAIL_URL", "smtp://mail.example.org"),
        ("FAILSOFT_OIDC_ALLOWED_DOMAINS", "example.org"),
        ("FAILSOFT_SECRET_KEY", "abcdefghijklmnopqrstuvwxyz0123456789"),
        ("FAILSOFT_RELEASE", "1.4"),
    ],
)
def test_quotes_that_a_container_engine_keeps_are_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, mark: str
) -> None:
    monkeypatch.setenv(name, f"{mark}{value}{mark}")
    with pytest.raises(ConfigurationError, match=f"^{name}: must be written without quotes"):
        load_configuration()


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        ["celery", "-A", "config.celery", "worker", "--queues", "fold"],
        ["celery", "-A", "config.celery", "beat", "--pidfile="],
        [
            *("granian", "--interface", "asginl", "--respawn-failed-workers"),
            *("--log-config", "config/web_logging.json", "config.asgi:application"),
        ],
    ],
    ids=["worker", "beat", "web"],
)
def test_an_invalid_value_stops_every_process_with_one_line(
    monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.setenv("FAILSOFT_LOG_LEVEL", "CHATTY")
    monkeypatch.delenv("DJANGO_SETTINGS_MODULE", raising=False)
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    (line,) = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (1, "")
    assert line.startswith("Settings: FAILSOFT_LOG_LEVEL: Input should be ")


def test_the_message_never_repeats_the_value(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = random.Random(8).randbytes(12).hex()
    monkeypatch.setenv("FAILSOFT_SECRET_KEY", secret)
    with pytest.raises(ConfigurationError) as refusal:
        load_configuration()
    assert secret not in str(refusal.value)


@pytest.mark.parametrize("missing", ["FAILSOFT_SECRET_KEY", "FAILSOFT_WORKING_KEY", "BROKER_URL"])
def test_a_server_without_its_keys_is_refused(server: pytest.MonkeyPatch, missing: str) -> None:
    server.delenv(missing)
    with pytest.raises(ConfigurationError, match=f"DATABASE_URL also needs {missing}$"):
        load_configuration()


def test_every_missing_key_of_a_server_is_named_at_once(server: pytest.MonkeyPatch) -> None:
    for name in ("FAILSOFT_SECRET_KEY", "FAILSOFT_WORKING_KEY", "BROKER_URL"):
        server.delenv(name)
    names = "FAILSOFT_SECRET_KEY, FAILSOFT_WORKING_KEY, BROKER_URL"
    with pytest.raises(ConfigurationError, match=f"DATABASE_URL also needs {names}$"):
        load_configuration()


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("https://Failsoft.Example.org:443/", "failsoft.example.org"),
        ("http://failsoft.example.org:80", "failsoft.example.org"),
        ("https://b\u00fccher.example:8443", "xn--bcher-kva.example:8443"),
        ("https://[2001:DB8::1]:8443", "[2001:db8::1]:8443"),
    ],
)
def test_the_base_url_is_kept_as_browsers_send_it_and_its_host_is_served(
    server: pytest.MonkeyPatch, address: str, host: str
) -> None:
    server.setenv("FAILSOFT_BASE_URL", address)
    server.delenv("FAILSOFT_ALLOWED_HOSTS", raising=False)
    scheme = address.partition(":")[0]
    assert load_configuration().base_url == f"{scheme}://{host}"
    program = (
        "import django; django.setup()\n"
        "from django.test import RequestFactory\n"
        f"print(RequestFactory().get('/', headers={{'Host': {host!r}}}).get_host())"
    )
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "config.settings"}
    command = [sys.executable, "-c", program]
    served = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert served.stdout.strip() == host, served.stderr


def test_environment_beats_file_beats_default(server: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "failsoft.toml"
    file.write_text('base_url = "https://file.example.org"\nlog_level = "ERROR"\n')
    server.setenv("FAILSOFT_CONFIG", str(file))
    server.setenv("FAILSOFT_LOG_LEVEL", "WARNING")
    settings = load_configuration()
    assert settings.base_url == "https://file.example.org"
    assert settings.log_level == "WARNING"
    assert settings.debug is False


def test_an_unknown_key_in_the_file_is_refused(server: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "failsoft.toml"
    file.write_text("basic_url = 1\n")
    server.setenv("FAILSOFT_CONFIG", str(file))
    with pytest.raises(ConfigurationError) as refusal:
        load_configuration()
    expected = f"{file}: basic_url: unknown setting; did you mean base_url?"
    assert str(refusal.value) == expected


def test_a_wrong_value_in_the_file_is_named_as_it_is_written(
    server: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "failsoft.toml"
    file.write_text('base_url = "failsoft.example.org"\n')
    server.setenv("FAILSOFT_CONFIG", str(file))
    with pytest.raises(ConfigurationError, match=f"^{file}: base_url: must be an http"):
        load_configuration()


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("FAILSOFT_LOG_LEVLE", "FAILSOFT_LOG_LEVEL"),
        ("FAILSOFT_DATABASE_POOLSIZE", "FAILSOFT_DATABASE_POOL_SIZE"),
        ("CCOS_MAX_PLAN_RETRY", "CCOS_MAX_PLAN_RETRIES"),
        ("ROBOPPI_COMPLETION_CHECKID", "ROBOPPI_COMPLETION_CHECK_ID"),
    ],
)
def test_a_misspelt_name_is_refused_with_the_nearest_one(
    monkeypatch: pytest.MonkeyPatch, name: str, nearest: str
) -> None:
    monkeypatch.setenv(name, "1")
    with pytest.raises(ConfigurationError) as refusal:
        load_configuration()
    assert str(refusal.value) == f"{name} is unknown; did you mean {nearest}?"


@pytest.mark.parametrize(
    "name",
    [
        "FAILSOFT_PORT",
        "FAILSOFT_WEB_SERVICE_HOST",
        "FAILSOFT_WEB_SERVICE_PORT_HTTP",
        "FAILSOFT_WEB_PORT_8000_TCP_ADDR",
        "FAILSOFT_COMPLETION_CHECK_ID",
        "FAILSOFT_API_KEY",
    ],
)
def test_names_set_by_kubernetes_checks_and_clients_are_let_through(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, "1")
    load_configuration()


def test_a_wrong_value_is_reported_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAILSOFT_DEBUG", "perhaps")
    with pytest.raises(ConfigurationError) as refusal:
        load_configuration()
    assert "default factory" not in str(refusal.value)
    assert ";" not in str(refusal.value)


def test_a_database_url_that_libpq_refuses_does_not_show_its_password(
    server: pytest.MonkeyPatch,
) -> None:
    word = random.Random(9).randbytes(6).hex()
    server.setenv("DATABASE_URL", f"postgresql://u:{word}/{word}@h:{word}/n?{word}")
    with pytest.raises(ConfigurationError, match=r"^DATABASE_URL: .*%XX") as refusal:
        load_configuration()
    assert word not in str(refusal.value)


def test_an_environment_file_adds_what_is_not_set(
    server: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "failsoft.env"
    file.write_text(
        "# of every process\nFAILSOFT_LOG_LEVEL=ERROR\n"
        "FAILSOFT_EMAIL_URL=smtp://user:a$b&c@mail.example.org\n"
        "BROKER_URL=redis://file.example.org\n"
    )
    # Set and taken back, so that what the file sets is gone after the test.
    server.setenv("FAILSOFT_LOG_LEVEL", "")
    server.setenv("FAILSOFT_EMAIL_URL", "")
    server.delenv("FAILSOFT_LOG_LEVEL")
    server.delenv("FAILSOFT_EMAIL_URL")
    server.setenv("FAILSOFT_ENV_FILE", str(file))
    settings = load_configuration()
    assert settings.log_level == "ERROR"
    assert settings.email_url == "smtp://user:a$b&c@mail.example.org"
    assert settings.broker_url == "amqp://127.0.0.1"


def test_an_environment_file_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAILSOFT_ENV_FILE", "/nowhere/failsoft.env")
    with pytest.raises(ConfigurationError, match=r"FAILSOFT_ENV_FILE: /nowhere/.*No such"):
        load_configuration()


def test_a_file_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAILSOFT_CONFIG", "/nowhere/failsoft.toml")
    with pytest.raises(ConfigurationError, match=r"/nowhere/failsoft\.toml: No such file"):
        load_configuration()


def test_a_file_that_is_not_toml_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "failsoft.toml"
    file.write_text("base_url: yes")
    monkeypatch.setenv("FAILSOFT_CONFIG", str(file))
    with pytest.raises(ConfigurationError, match=r"FAILSOFT_CONFIG: .*line 1"):
        load_configuration()


def test_without_a_database_the_running_stack_is_used(tmp_path: Path) -> None:
    stack = {"database_url": "postgresql:///failsoft?host=/x", "local_stack": True}
    keys = {"secret_key": "k" * 40, "working_key": random_working_key()}
    write_runtime(tmp_path, 1, {**stack, **keys, "broker_url": "memory://"})
    settings = load_configuration()
    assert settings.database_url == stack["database_url"]
    assert settings.local_stack


def test_a_named_database_is_never_mixed_with_the_running_stack(
    server: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write_runtime(tmp_path, 1, {"base_url": "http://127.0.0.1:1", "local_stack": True})
    settings = load_configuration()
    assert not settings.local_stack
    assert settings.base_url == "http://127.0.0.1:8000"


def test_the_runtime_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    write_runtime(tmp_path, 1, {})
    assert (tmp_path / "runtime.json").stat().st_mode & 0o777 == 0o600


def test_hosts_are_given_with_commas(server: pytest.MonkeyPatch) -> None:
    server.setenv("FAILSOFT_ALLOWED_HOSTS", "a.example.org, b.example.org")
    assert load_configuration().allowed_hosts == ["a.example.org", "b.example.org"]


def test_a_server_runs_no_command_as_a_check_until_it_is_told_one(
    server: pytest.MonkeyPatch,
) -> None:
    assert load_configuration().check_commands == {}
    assert "pr_review" in load_configuration(local_stack=True).check_commands


@pytest.mark.parametrize(
    ("address", "checks"),
    [
        ("rediss://:p%40ss@redis.example.org/0", True),
        ("rediss://redis.example.org/0?ssl_ca_certs=/ca.pem", True),
        ("rediss://redis.example.org/0?ssl_cert_reqs=none", False),
    ],
)
def test_the_certificate_of_a_broker_is_checked_unless_its_address_says_otherwise(
    server: pytest.MonkeyPatch, address: str, checks: bool
) -> None:
    server.setenv("BROKER_URL", address)
    broker = Connection(load_configuration().broker_url)
    assert isinstance(broker.ssl, dict)
    assert (broker.ssl["ssl_cert_reqs"] == ssl.CERT_REQUIRED) is checks
    if "@" in address:
        assert broker.password == "p@ss"

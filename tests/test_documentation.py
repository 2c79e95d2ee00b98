"""The documentation names what exists, and its examples work."""

import json
import re
import tomllib
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import pytest
import yaml
from django.core.management import call_command, get_commands, load_command_class
from django.urls import Resolver404, resolve

from config.configuration import OTHER_NAMES, Configuration, env_name
from config.retry import NAMES
from diagnostics.rest.batches import read_item, read_items
from failsoft.completion import CheckDecision, DecisionSource, resolve_completion_decision
from failsoft.events import ParseErrorType, PostedEvent
from failsoft.plans.contract import CONTRACT_VERSION
from failsoft.retry.answers import AnswerSchema, parse_answer
from failsoft.retry.policy import PRESETS, RetryConfig

TOP = Path(__file__).resolve().parent.parent
DOCUMENTS = sorted([*TOP.glob("*.md"), *(TOP / "docs").rglob("*.md")])
EXAMPLES = TOP / "examples"

LINK = re.compile(r"!?\[[^\]\n]*(?:\n[^\]\n]*)?\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
COMMAND = re.compile(r"manage\.py ([a-z_]+)((?: --[a-z-]+(?:[ =][^\s`-][^\s`]*)?)*)")
OPTION = re.compile(r"(--[a-z-]+)")
TARGET = re.compile(r"\bmake ([a-z][a-z-]+)")
API_PATH = re.compile(r"/api/v1/[a-zA-Z0-9_/<>-]*[a-zA-Z0-9_>]")
SETTING = re.compile(r"\b(?:FAILSOFT_[A-Z_]+|CCOS_[A-Z_]+|DATABASE_URL|BROKER_URL)\b")
SETTING_ROW = re.compile(r"^\| `FAILSOFT_(\w+)` \| ([^|;]*?)(?:;[^|]*)? \| (.*) \|$", re.MULTILINE)
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)

# Contracts, and tables that are looked up and not read.
REFERENCES = {"http-api", "parser", "requirements"}
HOUSE_WORDS = re.compile(
    r"\b(?:whoever|anew|mended|made up for|let off|puts? right|(?:is|are|was|were) told)\b",
    re.IGNORECASE,
)
every_document = pytest.mark.parametrize(
    "document", DOCUMENTS, ids=lambda path: str(path.relative_to(TOP))
)


def anchor_of(heading: str) -> str:
    kept = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower())
    return kept.replace(" ", "-")


def prose_of(document: Path) -> str:
    return FENCE.sub("", document.read_text(encoding="utf-8"))


def blocks_of(document: Path, language: str) -> Iterator[str]:
    for found, text in FENCE.findall(document.read_text(encoding="utf-8")):
        if found == language:
            yield text


@every_document
def test_every_internal_link_leads_somewhere(document: Path) -> None:
    for target in LINK.findall(prose_of(document)):
        if re.match(r"https?://", target):
            continue
        name, _, anchor = target.partition("#")
        path = (document.parent / name).resolve() if name else document
        assert path.exists(), target
        if anchor:
            headings = HEADING.findall(path.read_text(encoding="utf-8"))
            assert anchor in {anchor_of(heading) for heading in headings}, target


@every_document
def test_no_page_has_a_word_that_reads_as_translated(document: Path) -> None:
    assert HOUSE_WORDS.findall(document.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    "document", sorted((TOP / "docs").glob("*.md")), ids=lambda path: path.stem
)
def test_a_page_but_a_reference_has_at_most_1_500_words(document: Path) -> None:
    words = [word for word in prose_of(document).split() if re.search(r"\w", word)]
    assert document.stem in REFERENCES or len(words) <= 1_500


@every_document
def test_every_command_and_option_named_exists(document: Path) -> None:
    apps = get_commands()
    for name, tail in COMMAND.findall(document.read_text(encoding="utf-8")):
        assert name in apps, name
        app = apps[name]
        command = load_command_class(app, name)
        known = command.create_parser("manage.py", name)._option_string_actions
        for option in OPTION.findall(tail):
            assert option in known, f"{name} {option}"


def test_every_command_of_ours_is_listed() -> None:
    listed = (TOP / "docs" / "commands.md").read_text(encoding="utf-8")
    ours = {"agents", "config", "diagnostics", "failsoft", "plans"}
    for name, app in get_commands().items():
        assert app not in ours or re.search(rf"`{name}\b", listed), name


@every_document
def test_every_make_target_named_exists(document: Path) -> None:
    makefile = (TOP / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE))
    text = "\n".join(
        [*re.findall(r"`(make [^`]+)`", prose_of(document)), *blocks_of(document, "bash")]
    )
    assert set(TARGET.findall(text)) <= targets


@every_document
def test_every_api_address_named_exists(document: Path) -> None:
    # Rows of the requirements may name what is not built yet.
    if document.name == "requirements.md":
        return
    for path in API_PATH.findall(document.read_text(encoding="utf-8")):
        concrete = path.replace("RUN_ID", "00000000-0000-0000-0000-000000000000")
        concrete = re.sub(r"<\w+>|CORRELATION_ID", "reference", concrete)
        try:
            resolve(concrete)
        except Resolver404:
            pytest.fail(f"there is no {path}")


@every_document
def test_every_setting_named_exists(document: Path) -> None:
    known = {env_name(field) for field in Configuration.model_fields} | {*OTHER_NAMES}
    assert set(SETTING.findall(document.read_text(encoding="utf-8"))) <= known


def test_every_setting_is_documented() -> None:
    text = (TOP / "docs" / "configuration.md").read_text(encoding="utf-8")
    missing = [
        env_name(field)
        for field in Configuration.model_fields
        if f"`{env_name(field)}`" not in text
    ]
    assert missing == []


def test_documented_defaults_and_ranges_of_settings_are_those_of_the_code() -> None:
    page = (TOP / "docs" / "configuration.md").read_text(encoding="utf-8")
    rows = {
        name.lower(): (default, meaning) for name, default, meaning in SETTING_ROW.findall(page)
    }
    for name, field in Configuration.model_fields.items():
        if not isinstance(field.default, bool | int | float):
            continue
        default, meaning = rows[name]
        assert json.loads(default) == field.default, name
        bounds = [
            getattr(rule, side)
            for side in ("ge", "le")
            for rule in field.metadata
            if hasattr(rule, side)
        ]
        for pair in re.findall(r"(\d[\d.]*) to (\d[\d.]*)", meaning):
            assert [float(bound) for bound in pair] == bounds, name


def test_every_api_address_is_documented() -> None:
    text = "\n".join(document.read_text(encoding="utf-8") for document in DOCUMENTS)
    golden = (TOP / "tests/contract/http/openapi.json").read_text(encoding="utf-8")
    addresses = [re.sub(r"\{\w+\}", r"[\\w-]+", path) for path in json.loads(golden)["paths"]]
    assert [path for path in addresses if not re.search(rf"{path}(?![\w/-])", text)] == []


@every_document
def test_json_and_toml_examples_parse(document: Path) -> None:
    for text in blocks_of(document, "json"):
        # Several documents may stand below each other; ... stands for more.
        for part in re.split(r"\n(?=\{)", text):
            json.loads(part)
    for text in blocks_of(document, "toml"):
        tomllib.loads(text)


def test_s1_26_and_s1_27_the_documented_snippet_loads_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (text,) = blocks_of(TOP / "docs" / "configuration.md", "toml")
    (tmp_path / "failsoft.toml").write_text(text, encoding="utf-8")
    monkeypatch.setenv("FAILSOFT_CONFIG", str(tmp_path / "failsoft.toml"))
    monkeypatch.delenv("FAILSOFT_LOG_LEVEL", raising=False)
    loaded = Configuration()
    assert loaded.working_keep_hours == 48
    assert loaded.plan_retry["max_retries"] == 3


def section_of(document: str, heading: str) -> str:
    text = (TOP / "docs" / document).read_text(encoding="utf-8")
    found = re.search(
        rf"^(#+) {re.escape(heading)}$(.*?)(?=^#{{1,2}} |\Z)", text, re.MULTILINE | re.DOTALL
    )
    assert found is not None, heading
    return found[2]


def test_s1_28_precedence_is_documented() -> None:
    text = " ".join(section_of("configuration.md", "Retries").split())
    assert (
        "A goal's own `retry` wins over the environment, the environment over the "
        "section `plan_retry` of the file, the file over the default." in text
    )


# How the guide calls each failure that leads to a retry.
RETRIED = {
    ParseErrorType.NOT_JSON: "not JSON",
    ParseErrorType.SCHEMA_INVALID: "breaks the schema",
    ParseErrorType.EMPTY_OUTPUT: "empty",
    ParseErrorType.TRUNCATED: "cut off",
    ParseErrorType.MULTIPLE_OBJECTS: "several objects",
    ParseErrorType.DUPLICATE_KEY: "a key twice",
    ParseErrorType.REFUSAL: "a refusal",
}


def subsection_of(document: str, heading: str, title: str) -> str:
    """Give the text below a `###` title, on one line."""
    _, _, rest = section_of(document, heading).partition(f"### {title}\n")
    return " ".join(rest.partition("\n### ")[0].split())


def test_s1_29_and_s1_30_user_guide_explains_when_retries_happen_and_when_not() -> None:
    text = subsection_of("user-guide.md", "Retry behaviour", "When retries happen")
    when, _, rest = text.partition("Retries do not happen when")
    never, _, transport = rest.partition("A provider that cannot be reached")

    assert set(RETRIED) == set(ParseErrorType) - {ParseErrorType.OTHER}
    assert {kind for kind, words in RETRIED.items() if words not in when} == set()
    assert "line and column" in when
    assert "first answer is good" in never
    assert "do the wrong thing" in never
    assert all(word in transport for word in ("408", "429", "5xx", "without feedback"))


def test_s1_31_the_retry_shown_in_the_guide_is_what_the_parser_says() -> None:
    guide = section_of("user-guide.md", "Retry behaviour")
    lines = (EXAMPLES / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    asked = [json.loads(line) for line in lines]
    first, second = (
        parse_answer(item["raw"], AnswerSchema.PLAN, item["finish_reason"]) for item in asked
    )
    error = first["error"]
    assert (first["ok"], second["ok"]) == (False, True)
    shown = f"{error['type']}, line {error['line']}, column {error['column']}"
    assert f"first   not ok   {shown}\nsecond  ok" in guide


def test_s1_32_user_guide_and_configuration_list_every_option_and_name() -> None:
    guide = section_of("user-guide.md", "Retry behaviour")
    listed = section_of("configuration.md", "Retries")
    options = {*RetryConfig.model_fields, "max_attempts"}
    assert {name for name in options if f"`{name}`" not in guide} == set()
    names = {name for group in NAMES.values() for name in group}
    assert {name for name in names if f"`{name}`" not in listed} == set()


def test_s1_55_every_kind_of_parse_error_has_its_remedy() -> None:
    text = section_of("troubleshooting.md", "A goal failed")
    kinds = set(ParseErrorType) - {ParseErrorType.OTHER}
    assert {kind for kind in kinds if f"| `{kind}` |" not in text} == set()


def test_s1_57_troubleshooting_says_when_to_raise_the_number_of_attempts() -> None:
    heading, title = "A goal failed", "When to raise the number of attempts"
    text = subsection_of("troubleshooting.md", heading, title)
    raise_it, _, leave_it = text.partition("Do not when")

    assert raise_it.startswith("Raise it, to 3 at first, when - ")
    assert min(raise_it.count(" - "), leave_it.count(" - ")) >= 3
    metrics = set(re.findall(r"failsoft_\w+", raise_it))
    listed = (TOP / "docs/metrics.md").read_text(encoding="utf-8")
    assert len(metrics) == 2
    assert {name for name in metrics if f"`{name}`" not in listed} == set()
    assert "dev" in PRESETS
    assert "preset `dev`" in raise_it


def test_s3_30_the_documented_decision_is_the_one_that_is_read() -> None:
    section = section_of("completion.md", "What a check answers")
    (document,) = (text for kind, text in FENCE.findall(section) if kind == "json")
    given = json.loads(document)
    verdict = resolve_completion_decision(document, "", given["check_id"])

    assert re.findall(r"^\| `(\w+)` \|", section.partition("A check has")[0], re.MULTILINE) == list(
        given
    )
    assert verdict.decision.value == given["decision"]
    assert (verdict.source, verdict.check_id_match) == (DecisionSource.FILE_JSON, True)
    assert verdict.reasons == tuple(given["reasons"]) != ()
    assert verdict.fingerprints == tuple(given["fingerprints"]) != ()


def test_s3_44_the_migration_guide_leads_from_one_sample_to_the_other() -> None:
    guide = section_of("completion.md", "From legacy text to structured decisions")
    before, after = re.findall(r"^ *(?:before|after) +(\S.*)$", guide, re.MULTILINE)
    old, new = (resolve_completion_decision(text, "", "<the id>") for text in (before, after))

    assert (old.source, new.source) == (DecisionSource.FILE_TEXT, DecisionSource.FILE_JSON)
    assert old.decision is new.decision is CheckDecision.INCOMPLETE
    assert new.check_id_match
    assert new.reasons
    assert new.fingerprints
    samples = re.findall(r"`examples/(checks/\w+\.py)`", guide)
    assert samples == ["checks/pr_review_legacy.py", "checks/pr_review.py"]
    assert all((EXAMPLES / sample).exists() for sample in samples)
    assert "ROBOPPI_COMPLETION_CHECK_ID" in guide


def test_s1_66_three_presets_are_documented() -> None:
    guide = section_of("user-guide.md", "Retry behaviour")
    assert all(f"| {name}" in guide for name in ("development", "production", "low cost"))


def test_s2_45_and_s2_46_contract_version_is_in_contract_and_changelog() -> None:
    for name in ("CHANGELOG.md", "docs/architecture/plan-execution-contract.md"):
        assert CONTRACT_VERSION in (TOP / name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "words",
    [
        ("--payload", "plan.json"),
        ("--payload", "plan.json", "--strict"),
        ("--results", "results.json"),
    ],
)
def test_examples_keep_the_contract(words: tuple[str, ...]) -> None:
    option, name, *more = words
    output = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("verify_contract", option, str(EXAMPLES / name), *more, stdout=output)
    assert (ended.value.code, output.getvalue().strip()) == (0, "PASS")


def test_example_results_are_those_of_the_example_plan() -> None:
    output = StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("run_plan", str(EXAMPLES / "plan.json"), "--json", stdout=output)
    assert ended.value.code == 0
    expected = json.loads((EXAMPLES / "results.json").read_text(encoding="utf-8"))
    assert json.loads(output.getvalue()) == expected


def test_example_events_are_events() -> None:
    items = read_items((EXAMPLES / "events.json").read_bytes())
    assert all(isinstance(read_item(item, PostedEvent), PostedEvent) for item in items)


@pytest.mark.parametrize(
    "path", sorted((TOP / "docs" / "deployment").rglob("*.yaml")), ids=lambda p: p.name
)
def test_deployment_files_parse(path: Path) -> None:
    documents = list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
    assert documents
    assert all(isinstance(document, dict) for document in documents)


def test_deployment_environment_names_settings_that_exist() -> None:
    known = {env_name(field) for field in Configuration.model_fields}
    text = (TOP / "docs/deployment/failsoft.env.example").read_text(encoding="utf-8")
    assert set(SETTING.findall(text)) <= known

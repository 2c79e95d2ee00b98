"""Spellings that are one name, and names that are not."""

import pytest

from diagnostics.ingest.models import NameKind
from diagnostics.ingest.series_names import PROVIDERS, choose_names, key_of

PROVIDER, MODEL = NameKind.PROVIDER, NameKind.MODEL
ONE_NAME = [
    # OpenTelemetry renamed the values of `gen_ai.system` in `gen_ai.provider.name`.
    (
        PROVIDER,
        ["az.ai.openai", "azure.ai.openai", "azure", "Azure", "azure_openai", "Azure OpenAI"],
    ),
    (PROVIDER, ["az.ai.inference", "azure.ai.inference", "azure-ai"]),
    (PROVIDER, ["vertex_ai", "gcp.vertex_ai", "VertexAI", "google-vertex"]),
    (PROVIDER, ["gemini", "gcp.gemini", "google-gla"]),
    (PROVIDER, ["aws.bedrock", "aws_bedrock", "Bedrock", "AWS"]),
    # LangChain4j's and Eino's.
    (PROVIDER, ["azure_open_ai", "azure.ai.openai"]),
    (PROVIDER, ["google_ai_gemini", "gcp.gemini"]),
    (PROVIDER, ["google_vertex_ai_gemini", "gcp.vertex_ai"]),
    (PROVIDER, ["Claude", "anthropic"]),
    (PROVIDER, ["xai", "x_ai", "x-ai"]),
    (PROVIDER, ["mistralai", "mistral_ai", "Mistral"]),
    # As the AI SDK of Vercel writes them: `<provider>.<api>`.
    (PROVIDER, ["openai", "openai.chat", "openai.responses", "OpenAI.completion", "openai-chat"]),
    (PROVIDER, ["anthropic", "anthropic.messages"]),
    # Mirascope: `<provider>:<api>`.
    (PROVIDER, ["openai", "openai:completions", "openai:responses"]),
    (PROVIDER, ["azure", "azure.chat", "azure-openai.responses"]),
    (PROVIDER, ["google.vertex.chat", "vertex_ai"]),
    (PROVIDER, ["my-gateway.chat", "my-gateway"]),
    (PROVIDER, ["My-Gateway", "my-gateway ", " my-gateway"]),
    (MODEL, ["gpt-4o", "GPT-4o", " GPT-4o ", "gpt-4o\n"]),
    (MODEL, ["models/gemini-2.5-pro", "gemini-2.5-pro", "publishers/google/models/Gemini-2.5-Pro"]),
]
OTHER_NAMES = [
    # A dated name is a model of its own: what answers `gpt-4o` changes, what answers the other not.
    (MODEL, ["gpt-4o", "gpt-4o-2024-08-06", "gpt-4o-latest", "gpt-4o-mini", "gpt-4.0", "gpt4o"]),
    (MODEL, ["claude-sonnet-4", "claude-sonnet-4-20250514", "anthropic.claude-sonnet-4"]),
    (MODEL, ["openai/gpt-4o", "gpt-4o", "models/"]),
    (PROVIDER, ["google", "gcp.gen_ai", "gcp.gemini", "gcp.vertex_ai"]),
    (PROVIDER, ["azure.ai.openai", "azure.ai.inference", "openai"]),
    (PROVIDER, ["chat", "responses", ".chat", "openai.files", "openai"]),
    # A model may be named so.
    (MODEL, ["gpt-4o.chat", "gpt-4o"]),
    # Separators are alike only in the names of the table.
    (PROVIDER, ["gw-1.2", "gw-12", "gw_1_2"]),
]


@pytest.mark.parametrize(("kind", "spellings"), ONE_NAME)
def test_spellings_of_one_name_share_a_key(kind: NameKind, spellings: list[str]) -> None:
    assert len({key_of(kind, spelling) for spelling in spellings}) == 1


@pytest.mark.parametrize(("kind", "names"), OTHER_NAMES)
def test_other_names_have_keys_of_their_own(kind: NameKind, names: list[str]) -> None:
    assert len({key_of(kind, name) for name in names}) == len(names)


def test_every_name_of_the_table_is_its_own_key() -> None:
    assert all(key_of(PROVIDER, name) == name for name in PROVIDERS.values())


def test_a_blank_name_has_no_key() -> None:
    assert key_of(PROVIDER, "  ") == key_of(MODEL, "\t") == ""


def test_names_that_exist_stay_apart_and_new_spellings_join_one_of_them() -> None:
    kept = dict(choose_names(PROVIDER, ["az.ai.openai", "azure", "OpenAI", "prov_a"]))
    # By its key, the newest; by its own spelling, the one before.
    assert kept == {
        "azure.ai.openai": "azure",
        "az.ai.openai": "az.ai.openai",
        "openai": "OpenAI",
        "prov_a": "prov_a",
    }
    kept = dict(choose_names(MODEL, ["gpt-4o", "GPT-4o"]))
    assert kept == {"gpt-4o": "gpt-4o", "GPT-4o": "GPT-4o"}

"""Made-up names of models, providers and sources: generated from a seed."""

# ruff: noqa: E501 - lists, as many as fit on a line

from random import Random

from tests.failsoft.redaction.made_up import make

# Beginnings that tokens have, too, and some of vendors.
STARTS = (
    "sk-", "sk_", "pk-", "hf_", "glpat-", "local-", "gsk_", "xai-", "r8_", "voyage-", "co-", "m0-", "api-",
    "key-", "nk-", "fw_", "pa-", "test_", "live_", "prod_", "v1.0-", "sess-", "eyJ", "AKIA-", "SK", "pat-",
    "tok-", "up_", "dg_", "acme/", "meta-llama/", "openai/", "ollama:", "bedrock/eu.anthropic.", "",
)  # fmt: skip
STEMS = (
    "vllm", "model", "llama-3.1", "Llama-3-70B", "qwen2.5-coder", "Qwen2-VL", "mixtral-8x7b", "gpt-4o-mini",
    "claude-haiku-4", "DeepSeek-V3", "phi-3.5-mini", "gemma-2-9b-it", "support-bot", "planner", "invoice-reader",
)  # fmt: skip
ENDS = (
    "", "-m0", "-1", "-v2", "-70b", "-instruct", "-Instruct-AWQ", ":latest", "-q4_K_M", "-Q5_K_S.gguf", "-fp8",
    "-w4a16", "-int4-gptq", "-2024-07-18", "-20241022", "@{hex:7}", "-{hex:12}", "-{hex:40}", "@sha256:{hex:64}",
    ".{hex:32}", "-rc.1", "+cu121", "-a22b", "-pod-{hex:5}", "_{digit:6}",
)  # fmt: skip


def made_up_names(count: int, seed: int) -> list[str]:
    """Return so many different names."""
    random = Random(seed)
    names: set[str] = set()
    while len(names) < count:
        parts = map(random.choice, (STARTS, STEMS, ENDS))
        names.add(make("".join(parts), random)[0])
    return sorted(names)

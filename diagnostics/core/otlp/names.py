"""The attributes that are read; every other key is dropped before its value is looked at."""

GENAI = frozenset(
    {
        "gen_ai.agent.name",
        "gen_ai.completion",
        "gen_ai.conversation.id",
        "gen_ai.operation.name",
        "gen_ai.output.messages",
        "gen_ai.output.type",
        "gen_ai.provider.name",
        "gen_ai.request.max_tokens",
        "gen_ai.request.model",
        "gen_ai.request.temperature",
        "gen_ai.response.finish_reason",
        "gen_ai.response.finish_reasons",
        "gen_ai.response.id",
        "gen_ai.response.model",
        "gen_ai.system",
        "gen_ai.usage.completion_tokens",
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.prompt_tokens",
        # As span events and log records of `gen_ai.choice` have them.
        "finish_reason",
        "index",
        "message",
    }
)
OPENINFERENCE = frozenset(
    {
        "graph.node.id",
        "llm.finish_reason",
        "llm.invocation_parameters",
        "llm.model_name",
        "llm.provider",
        "llm.request.type",
        "llm.system",
        "llm.token_count.completion",
        "llm.token_count.prompt",
        "openinference.span.kind",
        "output.mime_type",
        "output.value",
    }
)
SHARED = frozenset(
    {
        "deployment.environment",
        "deployment.environment.name",
        "error.type",
        "event.name",
        "exception.type",
        "http.response.status_code",
        "server.address",
        "service.name",
        "service.version",
        "session.id",
    }
)
KNOWN = GENAI | OPENINFERENCE | SHARED
PREFIXES = (
    "failsoft.",
    # Only the first answer: `...0.message.content`, `...0.finish_reason`.
    "llm.output_messages.0.",
    "gen_ai.completion.0.",
)


def is_known(key: str) -> bool:
    """Say whether an attribute is read."""
    return key in KNOWN or key.startswith(PREFIXES)

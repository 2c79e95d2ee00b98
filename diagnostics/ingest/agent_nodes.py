"""The node of a call that names none: the agent around it.

The conventions of OpenTelemetry and OpenInference name an agent on its own span, not on its calls.
"""

from dataclasses import dataclass, field

from diagnostics.ingest.otlp.conventions import FRAMEWORK_CLASSES, read_call
from diagnostics.ingest.otlp.drafts import Draft
from diagnostics.ingest.otlp.telemetry import Span
from diagnostics.ingest.span_runs import AgentKey, is_agent_call


@dataclass(frozen=True, slots=True)
class NamedAgents:
    """The agents that the spans of one request name, and which spans are below them."""

    _parents: dict[AgentKey, str] = field(default_factory=dict)
    _nodes: dict[AgentKey, str] = field(default_factory=dict)

    def note(self, span: Span) -> None:
        key = AgentKey(span.trace_id, span.span_id)
        self._parents[key] = span.parent_id
        node = read_call(span.attributes, scope=span.scope).node if is_agent_call(span) else None
        if node and node not in FRAMEWORK_CLASSES:
            self._nodes[key] = node

    def node_of(self, item: Span | Draft) -> str:
        """Return the node of the innermost named agent at or above a span; empty without one."""
        if not self._nodes:
            return ""
        key, passed = AgentKey(item.trace_id, item.span_id), list[AgentKey]()
        # Each span is passed once, though spans are deep or name each other as parents.
        while key in self._parents and key not in self._nodes:
            self._nodes[key] = ""
            passed.append(key)
            key = key._replace(span_id=self._parents[key])
        node = self._nodes.get(key, "")
        self._nodes.update(dict.fromkeys(passed, node))
        return node

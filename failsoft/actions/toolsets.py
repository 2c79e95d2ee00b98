"""Toolsets: tools whose calls hold lists of entries, with a policy for each field."""

from dataclasses import dataclass

from failsoft.actions.policies import JsonSchema, Policy
from failsoft.retry.answer_schemas import closed_object
from failsoft.retry.prompts import ToolOffer

# The version of the format of native tool calls, sent with events.
ACTIONS_VERSION = "1"


@dataclass(frozen=True, slots=True)
class EntryField:
    """A field of an entry; `under` names the nested object that holds it."""

    name: str
    policy: Policy
    required: bool = False
    under: str | None = None


@dataclass(frozen=True, slots=True)
class ActionTool:
    """A tool: each entry of the list under `list_key` becomes one action of `type`."""

    name: str
    type: str
    # The verb in the summary: "created".
    past: str
    list_key: str
    fields: tuple[EntryField, ...]
    description: str = ""

    @property
    def groups(self) -> tuple[str, ...]:
        """The names of the nested objects of an entry."""
        return tuple(dict.fromkeys(field.under for field in self.fields if field.under))

    def schema(self) -> JsonSchema:
        entry = self._object(None)
        for group in self.groups:
            entry["properties"][group] = self._object(group)
            entry["required"].append(group)
        entries = {"type": "array", "minItems": 1, "items": entry}
        return closed_object({self.list_key: entries})

    def _object(self, group: str | None) -> JsonSchema:
        group_fields = [field for field in self.fields if field.under == group]
        fields = closed_object({field.name: dict(field.policy.schema) for field in group_fields})
        return {**fields, "required": [field.name for field in group_fields if field.required]}


@dataclass(frozen=True, slots=True)
class Toolset:
    """A named list of tools, in the order of the summary."""

    name: str
    tools: tuple[ActionTool, ...]

    def find(self, name: str) -> ActionTool | None:
        return next((tool for tool in self.tools if tool.name == name), None)

    @property
    def list_keys(self) -> tuple[str, ...]:
        """The keys under which calls may hold entries."""
        return tuple(dict.fromkeys(tool.list_key for tool in self.tools))

    def offers(self) -> tuple[ToolOffer, ...]:
        return tuple(ToolOffer(tool.name, tool.description, tool.schema()) for tool in self.tools)

"""How a goal's completion is checked, as a person fills it in."""

from typing import Any, cast

from django import forms

from diagnostics.models import Project
from plans.check_commands import command_names
from plans.core.completion.paths import PathRefusedError, read_relative_path
from plans.core.completion.specification import MAX_INSTRUCTIONS
from plans.core.json_text import JsonTextError, parse_json
from plans.tools.listing import list_tools

MOST_ITERATIONS = 20
MAX_PATH_CHARACTERS = 500
NOBODY = ("", "Nobody: the planner's word, or the end of its run")
KINDS = {"model": "The model", "tool": "A tool", "command": "A command"}
# What is asked for beside the kind, and the key of `completion_check` it becomes.
FIELDS_OF_KIND = {
    "model": {"check_instructions": "instructions"},
    "tool": {
        "check_tool": "tool",
        "check_args": "args",
        "check_file": "decision_file",
    },
    "command": {"check_command": "command", "check_file": "decision_file"},
}
NEEDED = {
    "check_tool": "Choose the tool that checks.",
    "check_command": "Choose the command that checks.",
}


class CheckForm(forms.Form):
    """The fields of `completion_check`; those of another kind than chosen are passed over."""

    max_iterations = forms.IntegerField(
        label="Rounds at most",
        initial=3,
        min_value=1,
        max_value=MOST_ITERATIONS,
        help_text="Plan, run, check and plan again: 1 to 20 times.",
        error_messages={"required": "Say how often it may go round: 1 to 20."},
    )
    check_kind = forms.ChoiceField(
        required=False,
        label="Who says that it is complete",
        choices=[NOBODY],
        help_text="A check is asked after each run of a plan, or when the planner of single "
        "steps says finish. What it finds missing is told to the next planning.",
    )
    check_tool = forms.ChoiceField(
        required=False,
        label="Tool",
        help_text="It returns the decision, or writes it into the decision file.",
    )
    check_args = forms.CharField(
        required=False,
        label="Its arguments",
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        help_text="A JSON object. ${check_id} and ${iteration} in it are replaced.",
    )
    check_command = forms.ChoiceField(
        required=False,
        label="Command",
        help_text="One of those that FAILSOFT_CHECK_COMMANDS allows.",
    )
    check_instructions = forms.CharField(
        required=False,
        label="What the model should look at",
        max_length=MAX_INSTRUCTIONS,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="It is shown the goal and what was done, and costs one call a check.",
    )
    check_file = forms.CharField(
        required=False,
        label="Decision file",
        max_length=MAX_PATH_CHARACTERS,
        help_text="A path below the goal's workspace, such as .loop/review.json. It is "
        "removed before each check, and read before the output.",
    )
    on_exhausted = forms.ChoiceField(
        required=False,
        label="Not complete after the last round",
        choices=[
            ("abort", "The goal fails"),
            ("continue", "The goal ends without failing, and says so"),
        ],
    )

    def offer_checks(self, project: Project) -> None:
        """Offer the tools that the project may call, and the commands that are allowed."""
        tools = [one.tool.name for one in list_tools(project.pk) if one.allowed]
        commands = command_names()
        kinds = [kind for kind in KINDS.items() if kind[0] != "command" or commands]
        for name, choices in (
            ("check_kind", [NOBODY, *kinds]),
            ("check_tool", [("", "Choose…"), *((name, name) for name in tools)]),
            ("check_command", [("", "Choose…"), *((name, name) for name in commands)]),
        ):
            cast("forms.ChoiceField", self.fields[name]).choices = choices

    @property
    def offers_commands(self) -> bool:
        """Whether any command may be a checker."""
        return bool(command_names())

    def clean_check_args(self) -> dict[str, Any]:
        """Read the arguments of a tool: one JSON object, or nothing."""
        text: str = self.cleaned_data["check_args"]
        if not text.strip() or self.data.get("check_kind") != "tool":
            return {}
        try:
            value = parse_json(text.encode("utf-8", "replace"))
        except JsonTextError as error:
            raise forms.ValidationError(str(error)) from None
        if not isinstance(value, dict):
            raise forms.ValidationError('Write a JSON object, such as {"path": "out"}.')
        return value

    def clean_check_file(self) -> str:
        """Refuse a path that leaves the workspace."""
        path: str = self.cleaned_data["check_file"]
        if path and self.data.get("check_kind") in ("tool", "command"):
            try:
                read_relative_path(path)
            except PathRefusedError as error:
                raise forms.ValidationError(str(error)) from None
        return path

    def clean(self) -> dict[str, Any]:
        """Ask for what the chosen kind needs."""
        cleaned = super().clean() or {}
        for name in FIELDS_OF_KIND.get(cleaned.get("check_kind", ""), ()):
            if name in NEEDED and not cleaned.get(name) and name not in self.errors:
                self.add_error(name, NEEDED[name])
        return cleaned

    def completion_check(self) -> dict[str, Any] | None:
        """What was filled in, as POST /api/v1/goals has it; None when nobody checks."""
        kind = self.cleaned_data["check_kind"]
        if not kind:
            return None
        given = {key: self.cleaned_data[name] for name, key in FIELDS_OF_KIND[kind].items()}
        check: dict[str, Any] = {key: value for key, value in given.items() if value}
        how = self.cleaned_data["on_exhausted"] or "abort"
        return {"kind": kind, **check, "on_exhausted": how}

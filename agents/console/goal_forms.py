"""Console forms about goals."""

import json
import secrets
from collections.abc import Sequence
from hashlib import sha256
from typing import Any, cast

from django import forms

from agents.goals.requests import MOST_ITERATIONS, REFERENCE_PATTERN
from agents.goals.state import MAX_ANSWER_CHARACTERS
from agents.llm.forms import LanguageModelField, enabled_models
from agents.llm.models import LanguageModel
from diagnostics.accounts.models import Project
from failsoft.actions.entries import ENTRIES
from failsoft.completion.specification import MAX_CHARACTERS, MAX_INSTRUCTIONS
from failsoft.parsing.strict import JsonTextError, parse_json
from failsoft.plans.violations import Violation
from failsoft.retry.policy import MAX_ATTEMPTS_CEILING
from plans.checks.commands import command_names
from plans.tools.registry import list_tools

NO_CHECK = ("", "No check: ends when the planner or its plan run ends")
KINDS = {"model": "The model", "tool": "A tool", "command": "A command"}
# What is asked for beside the kind, and the key of `completion_check` it becomes.
FIELDS_OF_KIND = {
    "model": {"check_instructions": "instructions"},
    "tool": {"check_tool": "tool", "check_args": "args", "check_file": "decision_file"},
    "command": {"check_command": "command", "check_file": "decision_file"},
}
NEEDED = {
    "check_tool": "Choose the tool that checks.",
    "check_command": "Choose the command that checks.",
}


class CheckForm(forms.Form):
    """The fields of `completion_check`; those of another kind than chosen are passed over."""

    max_iterations = forms.IntegerField(
        label="Max iterations",
        initial=3,
        min_value=1,
        max_value=MOST_ITERATIONS,
        help_text="Plan, run and check cycles, 1 to 20.",
        error_messages={"required": "Enter a number from 1 to 20."},
    )
    check_kind = forms.ChoiceField(
        required=False,
        label="Completion check",
        choices=[NO_CHECK],
        help_text="Runs after each plan run, or when a step-by-step planner finishes. Missing "
        "items are passed to the next planning prompt.",
    )
    check_tool = forms.ChoiceField(
        required=False,
        label="Tool",
        help_text="It returns the decision, or writes it into the decision file.",
    )
    check_args = forms.CharField(
        required=False,
        label="Arguments",
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false"}),
        help_text="A JSON object. ${check_id} and ${iteration} in it are replaced.",
    )
    check_command = forms.ChoiceField(
        required=False, label="Command", help_text="A command in FAILSOFT_CHECK_COMMANDS."
    )
    check_instructions = forms.CharField(
        required=False,
        label="Instructions for the model",
        max_length=MAX_INSTRUCTIONS,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="The model sees the goal and the results; one call per check.",
    )
    check_file = forms.CharField(
        required=False,
        label="Decision file",
        max_length=MAX_CHARACTERS,
        help_text="A path below the goal's workspace, such as .loop/review.json. It is "
        "removed before each check, and read before the output.",
    )
    on_exhausted = forms.ChoiceField(
        required=False,
        label="Incomplete after the last iteration",
        choices=[("abort", "The goal fails"), ("continue", "The goal ends as incomplete")],
    )

    def offer_checks(self, project: Project) -> None:
        tools = [tool.tool.name for tool in list_tools(project.pk) if tool.allowed]
        commands = command_names()
        kinds = [kind for kind in KINDS.items() if kind[0] != "command" or commands]
        for name, choices in (
            ("check_kind", [NO_CHECK, *kinds]),
            ("check_tool", [("", "Choose…"), *((name, name) for name in tools)]),
            ("check_command", [("", "Choose…"), *((name, name) for name in commands)]),
        ):
            cast("forms.ChoiceField", self.fields[name]).choices = choices

    @property
    def offers_commands(self) -> bool:
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
            raise forms.ValidationError('Enter a JSON object, such as {"path": "out"}.')
        return value

    def clean(self) -> dict[str, Any]:
        """Ask for what the chosen kind needs, beside what else is wrong."""
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
        parameters = {key: self.cleaned_data[name] for name, key in FIELDS_OF_KIND[kind].items()}
        check: dict[str, Any] = {key: value for key, value in parameters.items() if value}
        how = self.cleaned_data["on_exhausted"] or "abort"
        return {"kind": kind, **check, "on_exhausted": how}


RETRY = ("max_attempts", "send_error_feedback", "simplify_on_final_attempt", "use_stub_fallback")
MOST_CONSTRAINTS = 20
OPTIONAL_MARK = "?"
FIELD_OF_PATH = {
    "goal": "goal",
    "mode": "mode",
    "toolset": "mode",
    "provider": "language_model",
    "model": "language_model",
    "constraints": "constraints",
    "retry": "max_attempts",
    "max_iterations": "max_iterations",
    "completion_check": "check_kind",
    **{
        f"completion_check/{key}": name
        for fields in FIELDS_OF_KIND.values()
        for name, key in fields.items()
    },
}


class GoalForm(CheckForm):
    """What is asked, of which model, how often it may try, and who says it is complete."""

    goal = forms.CharField(
        label="Goal",
        widget=forms.Textarea(attrs={"rows": 5, "autofocus": True}),
        help_text="Up to 32 KiB. Credentials are masked before display.",
        error_messages={"required": "Enter a goal."},
    )
    language_model = LanguageModelField(
        LanguageModel.objects.none(),
        label="Model",
        empty_label=None,
        error_messages={"required": "No model is enabled in this project."},
    )
    mode = forms.ChoiceField(
        choices=[
            ("plan", "Whole plan"),
            ("next_step", "One step at a time"),
            ("actions", "Actions on entries"),
        ],
        initial="plan",
        label="Mode",
    )
    max_attempts = forms.TypedChoiceField(
        label="Max attempts",
        choices=[(n, str(n)) for n in range(1, MAX_ATTEMPTS_CEILING + 1)],
        coerce=int,
        initial=2,
        help_text="Including the first, per iteration.",
    )
    constraints = forms.CharField(
        required=False,
        label="Constraints",
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="One per line. Lines starting with ? are optional and may be "
        "dropped on the last attempt.",
    )
    send_error_feedback = forms.BooleanField(
        required=False, initial=True, label="send error feedback"
    )
    simplify_on_final_attempt = forms.BooleanField(
        required=False, initial=True, label="simplify the last attempt"
    )
    use_stub_fallback = forms.BooleanField(
        required=False, label="use a stub plan when all attempts fail"
    )
    page = forms.CharField(
        required=False, widget=forms.HiddenInput, initial=lambda: secrets.token_hex(8)
    )

    def __init__(self, project: Project, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        models = enabled_models(project)
        field = cast("LanguageModelField", self.fields["language_model"])
        field.queryset = models
        field.initial = next((m.pk for m in models if m.is_default), None)
        self.offer_checks(project)

    def clean_constraints(self) -> list[dict[str, object]]:
        lines = [line.strip() for line in self.cleaned_data["constraints"].splitlines()]
        constraints: list[dict[str, object]] = [
            {
                "text": line.removeprefix(OPTIONAL_MARK).strip(),
                "optional": line.startswith(OPTIONAL_MARK),
            }
            for line in lines
            if line.strip(OPTIONAL_MARK + " ")
        ]
        if len(constraints) > MOST_CONSTRAINTS:
            raise forms.ValidationError(
                f"{len(constraints)} constraints; {MOST_CONSTRAINTS} are the limit."
            )
        return constraints

    def order(self) -> dict[str, object]:
        """What was filled in, as the body of POST /api/v1/goals has it."""
        model: LanguageModel = self.cleaned_data["language_model"]
        return {
            "goal": self.cleaned_data["goal"],
            "mode": self.cleaned_data["mode"],
            "toolset": ENTRIES.name if self.cleaned_data["mode"] == "actions" else None,
            "provider": model.provider.name or None,
            "model": model.name or None,
            "constraints": self.cleaned_data["constraints"],
            "retry": {name: self.cleaned_data[name] for name in RETRY},
            "max_iterations": self.cleaned_data["max_iterations"],
            "completion_check": self.completion_check(),
        }

    def idempotency_key(self) -> str | None:
        """Return the key of what was filled in on a page: sent twice, it is one goal."""
        page = self.cleaned_data["page"]
        filled_in = f"{page} {json.dumps(self.order(), sort_keys=True)}"
        return sha256(filled_in.encode("utf-8", "replace")).hexdigest() if page else None

    def show_refusal(self, errors: Sequence[Violation]) -> None:
        for error in errors:
            parts = error.path.split("/")[1:3]
            whole = FIELD_OF_PATH.get("/".join(parts))
            head = FIELD_OF_PATH.get(parts[0]) if parts else None
            self.add_error(whole or head, error.message)


class AnswerForm(forms.Form):
    """An answer to a waiting goal: words, a confirmation, or where a secret lies."""

    text = forms.CharField(
        required=False,
        label="Answer",
        max_length=MAX_ANSWER_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 3}),
    )
    secret = forms.RegexField(
        REFERENCE_PATTERN,
        required=False,
        max_length=500,
        label="Reference",
        help_text="env:NAME or file:/path, where the worker finds it. "
        "The secret itself never goes through this page.",
        error_messages={"invalid": "Write env:NAME or file:/path."},
    )
    kind = forms.ChoiceField(
        choices=[(kind, kind) for kind in ("text", "confirmed", "declined", "secret")]
    )

    def clean(self) -> dict[str, Any]:
        """Ask for the field that the pressed button sends."""
        cleaned = super().clean() or {}
        kind = cleaned.get("kind")
        if kind in {"text", "secret"} and not cleaned.get(kind) and kind not in self.errors:
            self.add_error(kind, "Required.")
        return cleaned

    def order(self) -> dict[str, object]:
        """The answer as the body of POST /api/v1/goals/<id>/answer has it."""
        kind = self.cleaned_data["kind"]
        if kind in {"confirmed", "declined"}:
            return {"confirmed": kind == "confirmed"}
        return {kind: self.cleaned_data[kind]}

"""Console forms about goals."""

from collections.abc import Sequence
from typing import Any, cast

from django import forms
from django.db.models import Model, QuerySet

from agents.check_form import CheckForm
from agents.core.actions.entries import ENTRIES
from agents.core.interpreting import Schema
from agents.core.orders import MAX_ANSWER_CHARACTERS, MAX_GOAL_BYTES, FieldError
from agents.core.retry import MAX_ATTEMPTS_CEILING
from agents.core.task_state import NODES
from agents.models import LanguageModel
from diagnostics.models import Project

MOST_CONSTRAINTS = 20
REASON_CHARACTERS = 200
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
    "completion_check/tool": "check_tool",
    "completion_check/args": "check_args",
    "completion_check/command": "check_command",
    "completion_check/instructions": "check_instructions",
    "completion_check/decision_file": "check_file",
}


class LanguageModelField(forms.ModelChoiceField):  # type: ignore[type-arg]  # plain at run time
    """A choice among models, each named with its provider."""

    def label_from_instance(self, obj: Model) -> str:
        """Name the provider too: two of them may serve models of one name."""
        return f"{obj.provider.name}/{obj.name}" if isinstance(obj, LanguageModel) else ""


class GoalForm(CheckForm):
    """What is asked, of which model, how often it may try, and who says it is complete."""

    goal = forms.CharField(
        label="What should be done",
        widget=forms.Textarea(attrs={"rows": 5, "autofocus": True}),
        help_text="32 KiB at most. Credentials in it are masked before it is shown.",
        error_messages={"required": "Say what should be done."},
    )
    language_model = LanguageModelField(
        LanguageModel.objects.none(),
        label="Model",
        empty_label=None,
        error_messages={"required": "No model is registered in this project yet."},
    )
    mode = forms.ChoiceField(
        choices=[
            ("plan", "A whole plan"),
            ("next_step", "One step at a time"),
            ("actions", "Actions on entries"),
        ],
        initial="plan",
        label="Plan",
    )
    max_attempts = forms.TypedChoiceField(
        label="Calls of the model at most",
        choices=[(n, str(n)) for n in range(1, MAX_ATTEMPTS_CEILING + 1)],
        coerce=int,
        initial=2,
        help_text="The first attempt included, for each cycle.",
    )
    constraints = forms.CharField(
        required=False,
        label="Constraints",
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="One a line; a line that begins with ? is optional and may be "
        "dropped by the last attempt.",
    )
    send_error_feedback = forms.BooleanField(
        required=False, initial=True, label="tell the model what was wrong"
    )
    simplify_on_final_attempt = forms.BooleanField(
        required=False, initial=True, label="make the last attempt simpler"
    )
    use_stub_fallback = forms.BooleanField(
        required=False, label="let a stub plan stand in when all attempts fail"
    )

    def __init__(self, project: Project, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - passed on
        super().__init__(*args, **kwargs)
        models = enabled_models(project)
        field = cast("LanguageModelField", self.fields["language_model"])
        field.queryset = models
        field.initial = next((m.pk for m in models if m.is_default), None)
        self.offer_checks(project)

    def clean_goal(self) -> str:
        """Refuse a goal that is longer than the contract allows."""
        goal: str = self.cleaned_data["goal"]
        size = len(goal.encode())
        if size > MAX_GOAL_BYTES:
            raise forms.ValidationError(f"{size:,} bytes; {MAX_GOAL_BYTES:,} are the limit.")
        return goal

    def clean_constraints(self) -> list[dict[str, object]]:
        """Read a constraint a line."""
        lines = [line.strip() for line in self.cleaned_data["constraints"].splitlines()]
        found = [_constraint(line) for line in lines if line.strip(OPTIONAL_MARK + " ")]
        if len(found) > MOST_CONSTRAINTS:
            raise forms.ValidationError(
                f"{len(found)} constraints; {MOST_CONSTRAINTS} are the limit."
            )
        return found

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
            "retry": self._retry(),
            "max_iterations": self.cleaned_data["max_iterations"],
            "completion_check": self.completion_check(),
        }

    def show_refusal(self, errors: Sequence[FieldError]) -> None:
        """Put what the planner refuses beside the field it is about."""
        for error in errors:
            parts = error.path.split("/")[1:3]
            whole = FIELD_OF_PATH.get("/".join(parts))
            head = FIELD_OF_PATH.get(parts[0]) if parts else None
            self.add_error(whole or head, error.message)

    def _retry(self) -> dict[str, object]:
        names = (
            "send_error_feedback",
            "simplify_on_final_attempt",
            "use_stub_fallback",
        )
        switches = {name: self.cleaned_data[name] for name in names}
        return {"max_attempts": self.cleaned_data["max_attempts"], **switches}


class AnswerForm(forms.Form):
    """An answer to a waiting goal: words, a confirmation, or where a secret lies."""

    text = forms.CharField(
        required=False,
        label="Answer",
        max_length=MAX_ANSWER_CHARACTERS,
        widget=forms.Textarea(attrs={"rows": 3}),
    )
    secret = forms.RegexField(
        r"^(env:[A-Za-z_][A-Za-z0-9_]*|file:/.+)$",
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
            self.add_error(kind, "This is what the button sends; it is empty.")
        return cleaned

    def order(self) -> dict[str, object]:
        """The answer as the body of POST /api/v1/goals/<id>/answer has it."""
        kind = self.cleaned_data["kind"]
        if kind in {"confirmed", "declined"}:
            return {"confirmed": kind == "confirmed"}
        return {kind: self.cleaned_data[kind]}


def enabled_models(project: Project) -> QuerySet[LanguageModel]:
    """Models of a project that may be asked, by provider and name."""
    mine = LanguageModel.objects.filter(project=project, enabled=True)
    return (
        mine.filter(provider__enabled=True)
        .select_related("provider")
        .order_by("provider__name", "name")
    )


def _constraint(line: str) -> dict[str, object]:
    optional = line.startswith(OPTIONAL_MARK)
    return {"text": line.removeprefix(OPTIONAL_MARK).strip(), "optional": optional}


class ReasonForm(forms.Form):
    """Why a person moves a breaker."""

    reason = forms.CharField(max_length=REASON_CHARACTERS)


class IsolateForm(forms.Form):
    """Which model is to be left alone, at what, and why."""

    language_model = LanguageModelField(
        LanguageModel.objects.none(), label="Model", empty_label=None
    )
    operation = forms.ChoiceField(
        choices=[(node, node.replace("_", " ")) for node in NODES.values()],
        initial=NODES[Schema.PLAN],
        label="Planning",
    )
    reason = forms.CharField(max_length=REASON_CHARACTERS, label="Why")

    def __init__(self, project: Project, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - passed on
        super().__init__(*args, **kwargs)
        field = cast("LanguageModelField", self.fields["language_model"])
        field.queryset = enabled_models(project)

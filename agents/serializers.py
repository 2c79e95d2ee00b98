"""Shapes of answers about goals, for the OpenAPI document."""

from typing import Any

from rest_framework import serializers

from agents.models import Entry, Goal
from diagnostics.core.choices import choices_of
from diagnostics.serializers import FaultSerializer


class RefusedGoalSerializer(serializers.Serializer[Any]):
    """Why a request was refused, field by field."""

    detail = serializers.CharField()
    code = serializers.CharField()
    errors = FaultSerializer(many=True)  # type: ignore[assignment] # a field


class QueuedGoalSerializer(serializers.Serializer[Any]):
    """A goal that was accepted."""

    id = serializers.UUIDField()
    correlation_id = serializers.CharField()
    status = serializers.ChoiceField(choices_of(Goal.Status))
    url = serializers.CharField()


class GoalSummarySerializer(serializers.Serializer[Any]):
    """One goal of a list."""

    id = serializers.UUIDField()
    correlation_id = serializers.CharField()
    reference = serializers.CharField()
    url = serializers.CharField()
    goal = serializers.CharField(help_text="redacted and cut")
    mode = serializers.ChoiceField(Goal.Mode.choices)
    runner = serializers.CharField()
    status = serializers.ChoiceField(choices_of(Goal.Status))
    outcome = serializers.ChoiceField(list(Goal.Outcome), allow_null=True)
    source = serializers.ChoiceField(["planner", "stub", "given"])  # type: ignore[assignment] # a field
    provider = serializers.CharField(allow_null=True)
    model = serializers.CharField(allow_null=True)
    cycle = serializers.IntegerField()
    user_text = serializers.CharField(allow_blank=True)
    help = serializers.ListField(child=serializers.CharField())
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)


class GoalPageSerializer(serializers.Serializer[Any]):
    """Goals, newest first, and the cursor of the next page."""

    items = GoalSummarySerializer(many=True)
    next = serializers.CharField(allow_null=True)


class ActionsSerializer(serializers.Serializer[Any]):
    """What came of a goal's actions; in every other mode these are absent."""

    toolset = serializers.CharField(required=False)
    applied = serializers.ListField(child=serializers.DictField(), required=False)
    parse_failures = serializers.ListField(child=serializers.DictField(), required=False)
    execution_failures = serializers.ListField(child=serializers.DictField(), required=False)
    parse_failed = serializers.IntegerField(required=False, help_text="in entries")
    execution_failed = serializers.IntegerField(required=False)
    summary = serializers.CharField(required=False, allow_blank=True)
    undone_at = serializers.DateTimeField(required=False, allow_null=True)
    kept = serializers.ListField(
        child=serializers.CharField(),
        required=False,
        help_text="entries an undo left, because they were changed again",
    )


class GoalSerializer(GoalSummarySerializer, ActionsSerializer):
    """Everything that is known of a goal, redacted."""

    pdca_phase = serializers.ChoiceField(list(Goal.Phase))
    last_validation_error = serializers.DictField(allow_null=True)
    execution_eval = serializers.DictField(allow_null=True)
    next_user_question = serializers.CharField(allow_null=True)
    state = serializers.DictField(help_text="the state contract under one key")
    constraints = serializers.ListField(child=serializers.DictField())
    tools = serializers.ListField(child=serializers.CharField(), allow_null=True)
    retry = serializers.DictField()
    budget = serializers.DictField()
    max_iterations = serializers.IntegerField()
    attempts = serializers.ListField(child=serializers.DictField())
    events = serializers.ListField(child=serializers.DictField())
    plan = serializers.DictField(allow_null=True)
    results = serializers.ListField(child=serializers.DictField())
    runs = serializers.ListField(child=serializers.DictField())
    completion_check = serializers.DictField(allow_null=True)
    decisions = serializers.ListField(child=serializers.DictField())


class EntrySerializer(serializers.ModelSerializer[Entry]):
    """An entry, redacted; `due_text` is as it was written, `due_at` what it means."""

    class Meta:
        model = Entry
        fields = [
            "id",
            "content",
            "summary",
            "source_text",
            "category",
            "priority",
            "due_text",
            "due_at",
            "cadence",
            "status",
            "snooze_until",
            "created_at",
        ]


class EntryPageSerializer(serializers.Serializer[Any]):
    """Entries, the most important first, and the cursor of the next page."""

    items = EntrySerializer(many=True)
    next = serializers.CharField(allow_null=True)

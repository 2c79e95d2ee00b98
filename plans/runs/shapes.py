"""Shapes of answers about plans, for the OpenAPI document."""

from typing import Any

from rest_framework import serializers

from diagnostics.rest.openapi import FaultSerializer
from failsoft.plans.contract import TaskStatus
from plans.models.run import Run


class LocatedFaultSerializer(FaultSerializer):
    """A violation of the contract and where its value stands in the text."""

    line = serializers.IntegerField(help_text="1-based")
    column = serializers.IntegerField(help_text="1-based, in code points")


class RefusedPlanSerializer(serializers.Serializer[Any]):
    """A plan that breaks the contract; nothing was stored or run."""

    detail = serializers.CharField()
    code = serializers.CharField()
    errors = LocatedFaultSerializer(many=True)  # type: ignore[assignment] # a field


class VerdictSerializer(serializers.Serializer[Any]):
    """Whether a document keeps the contract."""

    contract_version = serializers.CharField()
    valid = serializers.BooleanField()
    errors = LocatedFaultSerializer(many=True)  # type: ignore[assignment] # a field


class ContractSerializer(serializers.Serializer[Any]):
    """The version of the contract in force, and where its parts are."""

    contract_version = serializers.CharField()
    schemas = serializers.DictField(child=serializers.CharField())
    checks = serializers.DictField(child=serializers.CharField())


class QueuedRunSerializer(serializers.Serializer[Any]):
    """A run that was accepted."""

    run_id = serializers.UUIDField()
    correlation_id = serializers.CharField()
    contract_version = serializers.CharField()
    status = serializers.ChoiceField(Run.State.choices)
    url = serializers.CharField()


class RunResultsSerializer(serializers.Serializer[Any]):
    """The results document of a run that has ended."""

    contract_version = serializers.CharField()
    results = serializers.ListField(child=serializers.DictField())


class RunSerializer(serializers.Serializer[Any]):
    """A run with the rows it has so far; `__meta__` is the last once it has ended."""

    run_id = serializers.UUIDField()
    correlation_id = serializers.CharField()
    cycle = serializers.IntegerField()
    contract_version = serializers.CharField()
    runner = serializers.ChoiceField(Run.Runner.choices)
    strict_degraded = serializers.BooleanField()
    release = serializers.CharField(help_text="What was deployed when it was submitted")
    refused_reason = serializers.CharField(help_text="Why no worker takes it; empty when one may")
    rerun_of = serializers.UUIDField(allow_null=True)
    status = serializers.ChoiceField(Run.State.choices)
    task_status = serializers.ChoiceField([status.value for status in TaskStatus], allow_null=True)
    results = serializers.ListField(child=serializers.DictField())
    contract_violations = FaultSerializer(many=True)
    created_at = serializers.DateTimeField()
    started_at = serializers.DateTimeField(allow_null=True)
    ended_at = serializers.DateTimeField(allow_null=True)

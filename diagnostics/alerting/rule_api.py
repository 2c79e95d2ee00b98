"""/api/v1/alert-rules and /api/v1/silences: what is watched, and when nobody is told of it."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Annotated

from django.shortcuts import get_object_or_404
from drf_spectacular.utils import extend_schema
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StrictInt
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from diagnostics import clock
from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.authentication import KeyedView, key_of, project_of
from diagnostics.alerting import incident_actions as actions
from diagnostics.alerting.backtests import BackTest, TriedRule, back_test
from diagnostics.alerting.incident_api import Person
from diagnostics.alerting.incident_records import totals_by_rule
from diagnostics.alerting.past import UntestableError
from diagnostics.alerting.rule_models import AlertRule, Silence, live_rules
from diagnostics.alerting.rule_rows import RuleError, change_rule, check_rule, create_rule
from diagnostics.alerting.rules import FilterError, RuleFields
from diagnostics.redaction.redactor import SecretTypedError, refuse_secret
from diagnostics.rest.bodies import InvalidBodyError, fault, read_fields, read_model
from diagnostics.rest.resources import (
    REFUSALS,
    ROW_PROBLEMS,
    Json,
    Listed,
    Resource,
    describe_model,
)
from diagnostics.selection.fields import read_moment


class RuleTotalsResource(Resource):
    """What became of the evaluations of a rule; a slice that fires is one fire."""

    evaluations: int
    fires: int
    false_fires: Annotated[int, Field(description="their incident ended as a false alarm")]


class RuleResource(RuleFields, Resource):
    """A rule as it is kept."""

    id: int
    version: int
    standard: Annotated[str | None, Field(description="out of the box")]
    owner: Person
    created_at: datetime
    updated_at: datetime
    last_90_days: RuleTotalsResource


class AlertRulesView(KeyedView):
    required_scopes = {"GET": Scope.READ, "POST": Scope.ADMIN}

    @extend_schema(responses={200: Listed[RuleResource], **ROW_PROBLEMS})
    def get(self, request: Request) -> Response:
        """List the rules by name."""
        rows = live_rules(project_of(request).pk).select_related("owner")
        return Response({"items": _describe(*rows)})

    @extend_schema(request=RuleFields, responses={201: RuleResource, **REFUSALS})
    def post(self, request: Request) -> Response:
        """Make a rule; 422 lists every field that is wrong."""
        key = key_of(request)
        with _refusing():
            row = create_rule(key.project_id, read_fields(request._request), key)
        row.refresh_from_db()
        return Response(_describe(row)[0], status=status.HTTP_201_CREATED)


class AlertRuleView(KeyedView):
    required_scopes = {"GET": Scope.READ, "PATCH": Scope.ADMIN, "DELETE": Scope.ADMIN}

    @extend_schema(responses={200: RuleResource, **ROW_PROBLEMS})
    def get(self, request: Request, rule_id: int) -> Response:
        """Show a rule."""
        return Response(_describe(_find(request, rule_id))[0])

    @extend_schema(
        request={"application/json": describe_model(RuleFields, is_partial=True)},
        responses={200: RuleResource, **REFUSALS, **ROW_PROBLEMS},
    )
    def patch(self, request: Request, rule_id: int) -> Response:
        """Change fields of a rule; its version grows when it judges otherwise."""
        row = _find(request, rule_id)
        with _refusing():
            row = change_rule(row, read_fields(request._request), key_of(request))
        if not row.is_enabled:
            actions.end_alerts(row)
        return Response(_describe(row)[0])

    @extend_schema(responses={204: None, **ROW_PROBLEMS})
    def delete(self, request: Request, rule_id: int) -> Response:
        """Delete a rule: what it fires for ends, what it found stays."""
        actions.archive_rule(_find(request, rule_id), key_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)


class BackTestView(KeyedView):
    required_scopes = {"POST": Scope.READ}

    @extend_schema(
        operation_id="alert_rules_backtest",
        request=TriedRule,
        responses={200: BackTest, **REFUSALS},
    )
    def post(self, request: Request) -> Response:
        """Say when a rule would have fired in the last days; nothing is kept."""
        with _refusing():
            fields = check_rule(read_fields(request._request), TriedRule)
            days = fields.pop("days")
            tested = back_test(project_of(request).pk, fields, clock.now(), days)
        return Response(tested.model_dump())


@contextmanager
def _refusing() -> Iterator[None]:
    """Answer the faults of a rule as those of a body."""
    try:
        yield
    except RuleError as error:
        faults = error.faults.items()
        paths = [fault(f"/{name.replace('.', '/')}", why) for name, why in faults]
        raise InvalidBodyError(paths) from error
    except UntestableError as error:
        raise InvalidBodyError([fault("/signal", str(error))]) from error


def _describe(*rules: AlertRule) -> list[Json]:
    """Return rules of one project in the wire format, with what became of their evaluations."""
    totals = totals_by_rule(rules[0].project_id, clock.now()) if rules else {}
    return [
        RuleResource.dump({**vars(rule), "owner": rule.owner, "last_90_days": totals[rule.pk]})
        for rule in rules
    ]


def _find(request: Request, rule_id: int) -> AlertRule:
    rows = live_rules(project_of(request).pk).select_related("owner")
    return get_object_or_404(rows, pk=rule_id)


Moment = Annotated[datetime, BeforeValidator(lambda value: read_moment(str(value), None))]


class SilenceRequest(BaseModel):
    """What is to be quiet until when; without a rule and a filter: everything."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra=lambda schema: schema.pop("additionalProperties")
    )

    rule_id: StrictInt | None = None
    filter: str = ""
    starts_at: Annotated[Moment, Field(default_factory=clock.now, description="default: now")]
    ends_at: Moment
    reason: str = ""


class SilenceResource(SilenceRequest, Resource):
    """A silence as it is kept."""

    id: int
    created_by: Person
    created_at: datetime


class SilencesView(KeyedView):
    required_scopes = {"GET": Scope.READ, "POST": Scope.ADMIN}

    @extend_schema(responses={200: Listed[SilenceResource], **ROW_PROBLEMS})
    def get(self, request: Request) -> Response:
        """List the silences that are on or to come."""
        rows = Silence.objects.filter(project=project_of(request), ends_at__gt=clock.now())
        silences = rows.select_related("created_by").order_by("ends_at", "pk")
        return Response({"items": [SilenceResource.dump(row) for row in silences]})

    @extend_schema(request=SilenceRequest, responses={201: SilenceResource, **REFUSALS})
    def post(self, request: Request) -> Response:
        """Keep calls quiet until a time: notifications only, evaluation goes on."""
        key = key_of(request)
        body = read_model(request._request, SilenceRequest)
        rule = None
        if body.rule_id is not None:
            rule = live_rules(key.project_id).filter(pk=body.rule_id).first()
        if rule is None and body.rule_id is not None:
            raise InvalidBodyError([fault("/rule_id", "not a rule of this project")])
        try:
            row = actions.silence(
                key.project_id,
                key,
                body.ends_at,
                rule=rule,
                text=refuse_secret(body.filter),
                reason=body.reason,
                starts_at=body.starts_at,
            )
        except (FilterError, SecretTypedError) as error:
            raise InvalidBodyError([fault("/filter", str(error))]) from error
        except actions.IncidentError as error:
            raise InvalidBodyError([fault("/ends_at", str(error))]) from error
        row.refresh_from_db()
        return Response(SilenceResource.dump(row), status=status.HTTP_201_CREATED)


class SilenceView(KeyedView):
    required_scopes = {"DELETE": Scope.ADMIN}

    @extend_schema(responses={204: None, **ROW_PROBLEMS})
    def delete(self, request: Request, silence_id: int) -> Response:
        """End a silence now."""
        rows = Silence.objects.filter(project=project_of(request))
        actions.end_silence(get_object_or_404(rows, pk=silence_id), key_of(request))
        return Response(status=status.HTTP_204_NO_CONTENT)

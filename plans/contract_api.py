"""The contract over HTTP: its schemas, and checks without running anything.

GET /api/v1/contract/ is the index; POST /api/v1/contract/payload and /results validate.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from django.http import Http404
from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.authentication import KeyedView
from diagnostics.rest.resources import BODY_PROBLEMS, ProblemResource, Resource
from failsoft.plans.contract import (
    CONTRACT_VERSION,
    MAX_PAYLOAD_BYTES,
    NAMES,
    PlanPayload,
    contract_schema,
)
from failsoft.plans.results import validate_results
from failsoft.plans.validation import validate_payload
from failsoft.plans.violations import Violation
from plans.bodies import LocatedFault, describe_violations, read_json_body
from plans.tools.registry import registered_tools

# Results carry outputs, which a payload does not.
_MAX_RESULTS_BYTES = 4 * MAX_PAYLOAD_BYTES


class ContractResource(Resource):
    """The current version of the contract, and the URLs of its parts."""

    contract_version: str
    schemas: dict[str, str]
    checks: dict[str, str]


class ContractVerdict(Resource):
    """Whether a document is valid under the contract."""

    contract_version: str
    valid: bool
    errors: list[LocatedFault]


_RESPONSES = {200: ContractVerdict, **BODY_PROBLEMS}
Check = Callable[[Any], list[Violation]]


class ContractView(KeyedView):
    required_scopes = {"GET": Scope.READ}

    @extend_schema(
        operation_id="contract_index",
        responses={200: ContractResource, **dict.fromkeys((401, 403), ProblemResource)},
    )
    def get(self, request: Request) -> Response:
        """Return the current version and the URLs of its schemas."""
        return Response(
            {
                "contract_version": CONTRACT_VERSION,
                "schemas": {name: reverse("api_contract_schema", args=[name]) for name in NAMES},
                "checks": {name: reverse(f"api_contract_{name}") for name in NAMES},
            }
        )


class ContractSchemaView(KeyedView):
    required_scopes = {"GET": Scope.READ}

    @extend_schema(
        operation_id="contract_schema",
        parameters=[OpenApiParameter("name", str, OpenApiParameter.PATH, enum=list(NAMES))],
        responses={
            (200, "application/schema+json"): {"type": "object"},
            **dict.fromkeys((401, 403, 404), ProblemResource),
        },
    )
    def get(self, request: Request, name: str) -> Response:
        """Return the JSON Schema (2020-12) of payloads or of results."""
        if name not in NAMES:
            raise Http404
        return Response(contract_schema(name), content_type="application/schema+json")


class CheckView(KeyedView):
    required_scopes = {"POST": Scope.READ}

    def respond(self, request: Request, limit: int, check: Check) -> Response:
        value, text = read_json_body(request._request, limit)  # the raw body, unparsed
        violations = check(value)
        return Response(
            {
                "contract_version": CONTRACT_VERSION,
                "valid": not violations,
                "errors": describe_violations(text, violations),
            }
        )


class PayloadCheckView(CheckView):
    @extend_schema(
        operation_id="contract_payload",
        parameters=[OpenApiParameter("strict", bool, description="Strict profile.")],
        request=PlanPayload,
        responses=_RESPONSES,
    )
    def post(self, request: Request) -> Response:
        """Validate a plan payload; answers 200 for valid and invalid ones."""
        strict = request.query_params.get("strict", "") in ("1", "true")
        check = partial(validate_payload, strict=strict, known_tools=registered_tools())
        return self.respond(request, MAX_PAYLOAD_BYTES, check)


class ResultsCheckView(CheckView):
    @extend_schema(
        operation_id="contract_results", request={"application/json": {}}, responses=_RESPONSES
    )
    def post(self, request: Request) -> Response:
        """Validate execution results; answers 200 for valid and invalid ones."""
        return self.respond(request, _MAX_RESULTS_BYTES, validate_results)

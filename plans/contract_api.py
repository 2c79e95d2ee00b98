"""The contract over HTTP: its schemas, and checks without running anything.

GET /api/v1/contract/ says what there is; POST /api/v1/contract/payload and /results check.
"""

from typing import Any

from django.http import Http404
from django.urls import reverse
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from diagnostics.accounts.api_keys import Scope
from diagnostics.accounts.authentication import KeyedView
from diagnostics.rest.openapi import BODY_PROBLEMS, ProblemSerializer
from diagnostics.rest.resources import Resource
from failsoft.plans.contract import CONTRACT_VERSION, MAX_PAYLOAD_BYTES, PlanPayload
from failsoft.plans.results import validate_results
from failsoft.plans.schemas import NAMES, contract_schema
from failsoft.plans.validation import validate_payload
from failsoft.plans.violations import Violation
from plans.bodies import LocatedFault, describe_violations, read_json_body
from plans.tools.registry import registered_tools

# Results carry outputs, which a payload does not.
_MAX_RESULTS_BYTES = 4 * MAX_PAYLOAD_BYTES


class ContractResource(Resource):
    """The version of the contract in force, and where its parts are."""

    contract_version: str
    schemas: dict[str, str]
    checks: dict[str, str]


class ContractVerdict(Resource):
    """Whether a document keeps the contract."""

    contract_version: str
    valid: bool
    errors: list[LocatedFault]


class ContractView(KeyedView):
    """The contract: its version, its schemas, and where to check."""

    required_scopes = {"GET": Scope.READ}

    @extend_schema(
        operation_id="contract_index",
        responses={200: ContractResource, **dict.fromkeys((401, 403), ProblemSerializer)},
    )
    def get(self, request: Request) -> Response:
        """Say which version is in force and where its schemas are."""
        return Response(
            {
                "contract_version": CONTRACT_VERSION,
                "schemas": {name: reverse("api_contract_schema", args=[name]) for name in NAMES},
                "checks": {name: reverse(f"api_contract_{name}") for name in NAMES},
            }
        )


class ContractSchemaView(KeyedView):
    """One JSON Schema of the contract."""

    required_scopes = {"GET": Scope.READ}

    @extend_schema(
        operation_id="contract_schema",
        parameters=[OpenApiParameter("name", str, OpenApiParameter.PATH, enum=list(NAMES))],
        responses={
            (200, "application/schema+json"): {"type": "object"},
            **dict.fromkeys((401, 403, 404), ProblemSerializer),
        },
    )
    def get(self, request: Request, name: str) -> Response:
        """Return the JSON Schema (2020-12) of payloads or of results."""
        if name not in NAMES:
            raise Http404
        return Response(contract_schema(name), content_type="application/schema+json")


class PayloadCheckView(KeyedView):
    """The payload validator."""

    required_scopes = {"POST": Scope.READ}

    @extend_schema(
        operation_id="contract_payload",
        parameters=[OpenApiParameter("strict", bool, description="Strict profile.")],
        request=PlanPayload,
        responses={200: ContractVerdict, **BODY_PROBLEMS},
    )
    def post(self, request: Request) -> Response:
        """Check a plan payload; the answer is 200 whatever the verdict."""
        value, text = read_json_body(
            request._request,  # the raw body, unparsed
            MAX_PAYLOAD_BYTES,
        )
        found = validate_payload(
            value,
            strict=request.query_params.get("strict", "") in ("1", "true"),
            known_tools=registered_tools(),
        )
        return Response(_describe(text, found))


class ResultsCheckView(KeyedView):
    """The results validator."""

    required_scopes = {"POST": Scope.READ}

    @extend_schema(
        operation_id="contract_results",
        request={"application/json": {}},
        responses={200: ContractVerdict, **BODY_PROBLEMS},
    )
    def post(self, request: Request) -> Response:
        """Check execution results; the answer is 200 whatever the verdict."""
        value, text = read_json_body(
            request._request,  # the raw body, unparsed
            _MAX_RESULTS_BYTES,
        )
        return Response(_describe(text, validate_results(value)))


def _describe(text: str, found: list[Violation]) -> dict[str, Any]:
    return {
        "contract_version": CONTRACT_VERSION,
        "valid": not found,
        "errors": describe_violations(text, found),
    }

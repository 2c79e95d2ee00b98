"""POST /api/v1/goals/<id>/undo: taking back what a goal of mode actions has applied."""

from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.api.bodies import refusing
from agents.applying import undo_actions
from agents.reading import actions_record, find_goal
from agents.serializers import ActionsSerializer, RefusedGoalSerializer
from diagnostics.access.authentication import ApiKeyAuthentication, HasScope, project_of
from diagnostics.core.api_keys import Scope
from diagnostics.serializers import ProblemSerializer


class UndoView(APIView):
    """The actions of a goal, taken back."""

    authentication_classes = (ApiKeyAuthentication,)
    permission_classes = (HasScope,)
    required_scopes = {"POST": Scope.ADMIN, "OPTIONS": Scope.READ}

    @extend_schema(
        operation_id="goals_undo",
        request=None,
        responses={
            200: ActionsSerializer,
            404: ProblemSerializer,
            409: RefusedGoalSerializer,
        },
    )
    def post(self, request: Request, reference: str) -> Response:
        """Take back exactly what was applied; `kept` names what was changed again since."""
        goal = find_goal(project_of(request).pk, reference)
        if goal is None:
            raise Http404
        with refusing():
            undo_actions(goal)
        return Response(actions_record(goal))

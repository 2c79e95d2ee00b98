"""Who does something about alerts on a page."""

from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied

from diagnostics.web.access import ConsoleRequest, may_act


def user_of(request: ConsoleRequest) -> User:
    """Return the person who asks."""
    assert isinstance(request.user, User)  # noqa: S101 - member_view let them in
    return request.user


def require_operator(request: ConsoleRequest) -> User:
    """Return the person who asks; refuse whoever may only look."""
    if not may_act(request):
        raise PermissionDenied
    return user_of(request)

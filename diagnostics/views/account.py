"""The reader's own account: name, address, the way to a new password."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.views.decorators.http import require_http_methods

from diagnostics.forms import AccountForm
from diagnostics.views.access import ConsoleRequest, member_view
from diagnostics.views.pages import respond


@require_http_methods(["GET", "HEAD", "POST"])
@member_view
def account(request: ConsoleRequest) -> HttpResponse:
    """Show and save the account."""
    form = AccountForm(request.POST or None, instance=request.user)
    if request.method == "POST" and form.is_valid():
        form.save()
        messages.success(request, "Saved.")
        return redirect("account")
    return respond(request, "console/account", {"form": form, "section": "account"})

"""The page of the demo data: load or remove it."""

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect

from agents.demo.loading import is_loaded, last_order, order_demo
from agents.jobs import DemoOrder
from diagnostics.settings.frame import settings_form, show
from diagnostics.web.pages import ConsoleRequest, user_of


@settings_form
def demo(request: ConsoleRequest) -> HttpResponse:
    if request.method == "POST":
        _order(request)
        return redirect("settings_demo")
    order = last_order(request.project)
    is_at_work = order is not None and order.status == DemoOrder.Status.RUNNING
    context = {"order": order, "is_at_work": is_at_work, "is_loaded": is_loaded(request.project)}
    return show(request, "demo", context, "Demo data")


def _order(request: ConsoleRequest) -> None:
    verb = request.POST.get("do", "")
    if verb not in DemoOrder.Verb.values:
        messages.error(request, "Choose to load or remove the demo data.")
        return
    order = order_demo(request.project, user_of(request), verb)
    if order.verb != verb:
        messages.warning(request, "The previous request is still running.")

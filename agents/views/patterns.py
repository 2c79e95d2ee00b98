"""The page that every failed goal leads to: goals that work well (S1-22)."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from agents.core.patterns import PATTERNS


@require_safe
def patterns(request: HttpRequest) -> HttpResponse:
    """Show example goals; open to everybody, for it holds nothing of anybody."""
    return render(request, "goals/patterns.html", {"patterns": PATTERNS, "section": "goals"})

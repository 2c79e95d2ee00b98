"""Looks at the minutes of a project, one after the other: one of several, to be killed."""

import sys
import time
from datetime import datetime, timedelta

import django

django.setup()

from diagnostics.alerting.evaluator import evaluate_project  # noqa: E402 - needs ready apps
from diagnostics.alerting.rule_models import AlertSlot  # noqa: E402 - needs ready apps

project, begin, slots = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
for number in range(slots):
    slot = datetime.fromisoformat(begin) + timedelta(minutes=number)
    # A minute takes a minute: it does not begin before the one before it was looked at.
    while not AlertSlot.objects.filter(project_id=project, slot__gte=slot).exists():
        evaluate_project(project, slot)
        time.sleep(0.005)

"""The web application, as loaded by an ASGI server."""

import os
import sys

import django
from django.conf import settings
from django.urls import get_resolver

from config.gc_tuning import freeze_loaded_objects

# Threads of one web process share connections; see config.database.
os.environ.setdefault("FAILSOFT_DATABASE_POOL_SIZE", "16")
django.setup(set_prefix=False)

# Beside threads that compute, a request waits this long each time it needs the interpreter: with
# Python's default of 5 ms and three such threads, a post took 200 ms instead of 70.
sys.setswitchinterval(0.001)

from config.web import Application  # noqa: E402 - it imports models

application = Application(settings.FAILSOFT_WEB_THREADS)
# Load every view before the first request.
get_resolver().url_patterns  # noqa: B018 - loads on access
freeze_loaded_objects()
